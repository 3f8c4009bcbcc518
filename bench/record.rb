# frozen_string_literal: true

# How many bytes does an event take in a recording, and how many events a second does one core write and read back?
#
# The events are real: the extension records a program that renders 1,000 ERB pages through Rack. bench/record.c then writes
# these events over and over, each time later, and checks that what is read back is equal. With a file of events as argument
# (raw 16-byte slots) those are used instead.
require "tmpdir"
require_relative "support/events"

ROOT = File.expand_path("..", __dir__)

def bench(path)
  system("cmake", "--build", "--preset", "release", "--target", "bench_record", chdir: ROOT, out: $stderr, exception: true)
  exec(File.join(ROOT, "build/release/bench_record"), path)
end

bench(File.expand_path(ARGV.first)) if ARGV.any?

Dir.mktmpdir("rrtrace-bench") do |folder|
  path = File.join(folder, "pages.events")
  File.binwrite(path, Events.record("Pages.render(1000)"))
  pid = fork { bench(path) }
  Process.wait(pid)
  exit($?.exitstatus || 1)
end
