# frozen_string_literal: true

# How many bytes does an event take in a recording, and how many events a second does one core write and read back?
#
# The events are real: the extension records a program that renders 1,000 ERB pages through Rack. bench/record.c then writes
# these events over and over, each time later, and checks that what is read back is equal. With a file of events as argument
# (raw 16-byte slots) those are used instead.
require "rbconfig"
require "tmpdir"
require_relative "../test/ruby/ring_reader"

ROOT = File.expand_path("..", __dir__)

# The slots of one process that runs the code, traced.
def record(code)
  reader = RingReader.new
  program = <<~RUBY
    require "rrtrace/rrtrace"
    require #{File.join(__dir__, "support/pages").dump}
    Pages.render(3) # what is loaded on first use is loaded
    Rrtrace::Native.join(ENV.fetch("SESSION"), 1 << 20, false, true, false)
    begin
      #{code}
    ensure
      Rrtrace::Native.leave(10_000)
    end
  RUBY
  ran = system({"SESSION" => reader.path}, RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-e", program)
  abort "bench/record: the traced program failed" unless ran
  reader.finish(60).first.bytes
end

def bench(path)
  system("cmake", "--build", "--preset", "release", "--target", "bench_record", chdir: ROOT, out: $stderr, exception: true)
  exec(File.join(ROOT, "build/release/bench_record"), path)
end

bench(File.expand_path(ARGV.first)) if ARGV.any?

Dir.mktmpdir("rrtrace-bench") do |folder|
  path = File.join(folder, "pages.events")
  File.binwrite(path, record("Pages.render(1000)"))
  pid = fork { bench(path) }
  Process.wait(pid)
  exit($?.exitstatus || 1)
end
