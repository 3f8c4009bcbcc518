# frozen_string_literal: true

# How long does `rrtrace view` take to know how a recording of 1 GB looked, and to have read all of it?
#
# The events are real ones, as bench/record's; bench/view.c makes a session of them over and over, each time later, and records
# it. A recording may be given as argument instead; it is not removed.
require "tmpdir"
require_relative "support/events"

ROOT = File.expand_path("..", __dir__)

def bench(*arguments)
  system("cmake", "--build", "--preset", "release", "--target", "bench_view", chdir: ROOT, out: $stderr, exception: true)
  system(File.join(ROOT, "build/release/bench_view"), *arguments) || exit(1)
end

if ARGV.any?
  bench(File.expand_path(ARGV.first))
else
  Dir.mktmpdir("rrtrace-bench") do |folder|
    path = File.join(folder, "pages.events")
    File.binwrite(path, Events.record("Pages.render(1000)"))
    bench("--make", path)
  end
end
