# frozen_string_literal: true

# Does an event cost more when many threads or Ractors send it, and is every one of them there?
#
#   bin/bench threads [--rounds N]
#
# 1, 2, 8 and 64 threads, or 1 and 2 Ractors, share the same work: calls, and pipes to write into and read from. Each program runs
# untraced and recorded, by turns; what recording adds, for each event, is compared with what it adds to one thread, or to one
# Ractor. Two Ractors keep both cores of a small machine busy, on which everything is slower then: so the factor by which they
# are slower than untraced is compared as well. Times are the program's CPU time. Afterwards the recording's report must have exactly the calls that were made.
require "json"
require "optparse"
require "tmpdir"
require_relative "support/lab"

CALLS = 1_600_000
WRITES = 12_800
ROWS = [1, 2, 8, 64].map { ["Thread", _1] } + [1, 2].map { ["Ractor", _1] }

# A program of so many threads or Ractors; prints the CPU ns of the work itself.
PROGRAM = <<~RUBY
  kind = ARGV.shift
  count, calls, writes = ARGV.map { Integer(_1) }
  module Hammer
    def self.hit = nil
    def self.work(calls, writes)
      reader, writer = IO.pipe
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
  now = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) }
  part = [calls / count, writes / count]
  if kind == "Ractor"
    pool = Array.new(count) { Ractor.new(part) { |part| Ractor.receive; Hammer.work(*part) } }
    began = now.call
    pool.each { _1.send(nil) }.each(&:take)
  else
    gate = Thread::Queue.new
    pool = Array.new(count) { Thread.new { gate.pop; Hammer.work(*part) } }
    began = now.call
    gate.close
    pool.each(&:join)
  end
  puts now.call - began
RUBY

def name((kind, count)) = "#{count} #{kind}#{"s" if count > 1}"

def cpu_ns(row, prefix = [])
  said = IO.popen([Lab::CLEAN, *prefix, Lab::RUBY, "-W0", "-e", PROGRAM, *[*row, CALLS, WRITES].map(&:to_s)], err: File::NULL, &:read)
  abort "the program with #{name(row)} failed" unless $?.success?
  said.to_i
end

def report(file)
  JSON.parse(IO.popen([Lab::CLEAN, *Lab.rrtrace("report", file, "--format=json")], err: File::NULL, &:read))
end

# The events of a recording, which must be complete.
def checked_events(file, row)
  report = report(file)
  calls = report.fetch("methods").to_h { |method| [method.fetch("name"), method.fetch("calls")] }
  found = calls.values_at("Hammer.hit", "IO#syswrite", "IO#sysread", "Hammer.work")
  wanted = [CALLS, WRITES, WRITES, row.last]
  abort "#{name(row)}: #{found} calls instead of #{wanted}, #{report["dropped"]} dropped" unless found == wanted && report["dropped"].zero?
  report.fetch("events")
end

rounds = 5
OptionParser.new { |parser| parser.on("--rounds N", Integer) { rounds = _1 } }.parse!
puts Lab.machine, ""
Dir.mktmpdir("rrtrace-bench") do |folder|
  file = File.join(folder, "threads.rrt")
  events = {}
  added = ROWS.to_h { |row| [row, []] } # ns an event
  slower = ROWS.to_h { |row| [row, []] } # times
  rounds.times do |round|
    warn "round #{round + 1} of #{rounds}"
    ROWS.rotate(round).each do |row|
      plain = cpu_ns(row)
      traced = cpu_ns(row, Lab.rrtrace("--no-window", "-o", file, "--"))
      events[row] = checked_events(file, row)
      added[row] << (traced - plain).fdiv(events[row])
      slower[row] << traced.fdiv(plain)
    end
  end
  to_one = lambda do |figures|
    ROWS.to_h { |kind, count| [[kind, count], figures[[kind, count]].zip(figures[[kind, 1]]).map { |mine, single| mine / single }] }
  end
  ratios, slowdowns = to_one[added], to_one[slower]
  rows = [["", "× one's", "middle half", "added ns/event", "× untraced", "events", "calls missing"]]
  ROWS.each do |row|
    low, high = Lab.quartiles(ratios[row])
    rows << [name(row), format("%.2f", Lab.median(ratios[row])), format("%.2f–%.2f", low, high), format("%.1f", Lab.median(added[row])),
      format("%.2f", Lab.median(slower[row])), events[row].to_s, "0"]
  end
  Lab.table(rows)
  puts
  ROWS.each { |kind, count| puts "#{kind.downcase}s.cost_ratio.#{count}: #{Lab.median(ratios[[kind, count]]).round(3)}" if count > 1 }
  puts "ractors.slowdown_ratio.2: #{Lab.median(slowdowns[["Ractor", 2]]).round(3)}"
end
