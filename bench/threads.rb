# frozen_string_literal: true

# Does an event cost more when many threads send it, and is every one of them there?
#
#   bin/bench threads [--rounds N]
#
# 1, 2, 8 and 64 threads share the same work: calls, and pipes to write into and read from. Each program runs untraced and
# recorded, by turns; what recording adds, for each event, is compared with what it adds to one thread. Times are the
# program's CPU time. Afterwards the recording's report must have exactly the calls that were made.
require "json"
require "optparse"
require "tmpdir"
require_relative "support/lab"

CALLS = 1_600_000
WRITES = 12_800
COUNTS = [1, 2, 8, 64].freeze

# A program of that many threads; prints the CPU ns of the work itself.
PROGRAM = <<~RUBY
  threads, calls, writes = ARGV.map { Integer(_1) }
  module Hammer
    def self.hit = nil
    def self.work(calls, writes, pipe)
      reader, writer = pipe
      writes.times do
        writer.syswrite("ball")
        reader.sysread(4)
        i = 0
        while i < calls / writes
          hit; hit; hit; hit; hit
          i += 5
        end
      end
    end
  end
  pipes = Array.new(threads) { IO.pipe }
  gate = Thread::Queue.new
  pool = pipes.map { |pipe| Thread.new { gate.pop; Hammer.work(calls / threads, writes / threads, pipe) } }
  began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  gate.close
  pool.each(&:join)
  puts Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - began
RUBY

def rrtrace(*arguments) = [Lab::RUBY, File.join(Lab::ROOT, "exe/rrtrace"), *arguments]

def cpu_ns(threads, prefix = [])
  said = IO.popen([Lab::CLEAN, *prefix, Lab::RUBY, "-e", PROGRAM, threads.to_s, CALLS.to_s, WRITES.to_s], err: File::NULL, &:read)
  abort "the program with #{threads} threads failed" unless $?.success?
  said.to_i
end

def report(file)
  JSON.parse(IO.popen([Lab::CLEAN, *rrtrace("report", file, "--format=json")], err: File::NULL, &:read))
end

# The events of a recording, which must be complete.
def checked_events(file, threads)
  report = report(file)
  calls = report.fetch("methods").to_h { |method| [method.fetch("name"), method.fetch("calls")] }
  found = calls.values_at("Hammer.hit", "IO#syswrite", "IO#sysread", "Hammer.work")
  wanted = [CALLS, WRITES, WRITES, threads]
  abort "#{threads} threads: #{found} calls instead of #{wanted}, #{report["dropped"]} dropped" unless found == wanted && report["dropped"].zero?
  report.fetch("events")
end

rounds = 5
OptionParser.new { |parser| parser.on("--rounds N", Integer) { rounds = _1 } }.parse!
puts Lab.machine, ""
Dir.mktmpdir("rrtrace-bench") do |folder|
  file = File.join(folder, "threads.rrt")
  events = {}
  added = COUNTS.to_h { |threads| [threads, []] } # ns an event
  rounds.times do |round|
    warn "round #{round + 1} of #{rounds}"
    COUNTS.rotate(round).each do |threads|
      plain = cpu_ns(threads)
      traced = cpu_ns(threads, rrtrace("--no-window", "-o", file, "--"))
      events[threads] = checked_events(file, threads)
      added[threads] << (traced - plain).fdiv(events[threads])
    end
  end
  ratios = added.transform_values { |list| list.zip(added.fetch(1)).map { |mine, single| mine / single } }
  rows = [["threads", "× one thread's", "middle half", "added ns/event", "events", "calls missing"]]
  COUNTS.each do |threads|
    low, high = Lab.quartiles(ratios[threads])
    rows << [threads.to_s, format("%.2f", Lab.median(ratios[threads])), format("%.2f–%.2f", low, high), format("%.1f", Lab.median(added[threads])),
      events[threads].to_s, "0"]
  end
  Lab.table(rows)
  puts
  COUNTS.drop(1).each { |threads| puts "threads.cost_ratio.#{threads}: #{Lab.median(ratios[threads]).round(3)}" }
end
