# frozen_string_literal: true

require "mkmf"

$CPPFLAGS = "-isystem $(hdrdir) -isystem $(arch_hdrdir) #{$CPPFLAGS} -D_GNU_SOURCE"
root = File.expand_path("../../..", __dir__)
$INCFLAGS << " -I#{root.include?(" ") ? root.dump : root}"
$warnflags = ""
$CFLAGS << " -std=gnu11 -O3 -Wall -Wextra -Wshadow -Wconversion -Wpedantic"
create_makefile("bench_hooks")
