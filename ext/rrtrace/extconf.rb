# frozen_string_literal: true

# Builds rrtrace/rrtrace.so. What is missing is said in a sentence before any compiler says it in fifty.
require "mkmf"

def stop_build(sentence)
  warn "rrtrace: #{sentence}"
  exit 1
end

if RUBY_ENGINE != "ruby"
  stop_build "only CRuby can be traced, and this is #{RUBY_ENGINE}."
end
if Gem::Version.new(RUBY_VERSION) < Gem::Version.new("3.3.0")
  stop_build "Ruby 3.3 or newer is needed, and this is #{RUBY_VERSION}."
end
if [1].pack("J").bytesize != 8
  stop_build "a 64-bit Ruby is needed."
end

RUBY_NEEDS = {
  "rb_internal_thread_add_event_hook" => "ruby/thread.h",
  "rb_internal_thread_specific_key_create" => "ruby/thread.h",
  "rb_postponed_job_preregister" => "ruby/debug.h",
  "rb_tracearg_defined_class" => "ruby/debug.h",
  "rb_class_attached_object" => "ruby.h"
}.freeze
RUBY_NEEDS.each do |function, header|
  have_func(function, ["ruby.h", header]) or
    stop_build "this Ruby (#{RUBY_DESCRIPTION}) lacks #{function}, which the tracer needs."
end

have_library("rt", "shm_open") unless have_func("shm_open", "sys/mman.h")
{
  "shm_open" => "sys/mman.h", "clone" => "sched.h", "pthread_atfork" => "pthread.h"
}.each do |function, header|
  have_func(function, header) or stop_build "this system lacks #{function} (#{header}), which the tracer needs."
end

source = File.expand_path(__dir__)
root = File.expand_path("../..", source)
File.exist?(File.join(root, "wire/ring.h")) or stop_build "#{root}/wire/ring.h is missing: the package is not whole."

# As system headers Ruby's own are not measured by our warnings.
$CPPFLAGS = "-isystem $(hdrdir) -isystem $(arch_hdrdir) #{$CPPFLAGS} -D_GNU_SOURCE"
$INCFLAGS << " -I#{root.include?(" ") ? root.dump : root}"
$warnflags = "" # Ruby's own flags for its own source
$CFLAGS << " -std=gnu11 -O3 -fvisibility=hidden -Wall -Wextra"
if ENV["RRTRACE_WERROR"] || File.exist?(File.join(root, ".git"))
  $CFLAGS << " -Wshadow -Wconversion -Wpedantic"
end
$CFLAGS << " -Werror" if ENV["RRTRACE_WERROR"]

create_makefile("rrtrace/rrtrace")
