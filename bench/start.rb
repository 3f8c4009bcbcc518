# frozen_string_literal: true

# How long do programs wait for rrtrace before their first line, when it is only required and when it traces?
#
#   bin/bench start [--rounds N]
#
# Commands run by turns, each until it has ended; medians of the differences within a round. "CPU" is what the command's own
# processes computed: what remains of it on a busy machine; the visualizer, which stays behind, is not in it. And what `require "rrtrace"` alone
# leaves behind: no extension and so no hook, no thread, no open file, no file of its own but two.
require "optparse"
require "tmpdir"
require_relative "support/lab"

Taken = Struct.new(:clock_ms, :cpu_ms) do
  def -(other) = Taken.new(clock_ms - other.clock_ms, cpu_ms - other.cpu_ms)
end

def look
  times = Process.times
  Taken.new(Lab.now * 1000, (times.cutime + times.cstime) * 1000)
end

def run(*command)
  before = look
  system(Lab::CLEAN, *command, out: File::NULL, err: File::NULL) or abort "#{command.join(" ")} failed"
  look - before
end

def median_of(list, what) = Lab.median(list.map(&what))

# Aborts when requiring the library does anything but define its API.
def check_require
  program = <<~'RUBY'
    look = -> { [Dir.children("/proc/self/task").size, Dir.children("/proc/self/fd").size, Thread.list.size, ENV.to_h] }
    look.call
    before, loaded = look.call, $LOADED_FEATURES.dup
    require "rrtrace"
    after = look.call
    abort "it has changed #{before} to #{after}" unless before == after
    files = $LOADED_FEATURES - loaded
    abort "it has loaded #{files}" unless files.all? { |file| file.end_with?("lib/rrtrace.rb", "lib/rrtrace/version.rb") }
    maps = File.read("/proc/self/maps")
    abort "its extension is there" if maps.include?("rrtrace.so")
  RUBY
  system(Lab::CLEAN, Lab::RUBY, "-I", Lab::LIB, "-e", program) or abort "require \"rrtrace\" is not as quiet as it should be"
end

rounds = 40
OptionParser.new { |parser| parser.on("--rounds N", Integer) { rounds = _1 } }.parse!
puts Lab.machine, ""
check_require
Dir.mktmpdir("rrtrace-bench") do |folder|
  recording = File.join(folder, "start.rrt")
  traced = Lab.rrtrace("--no-window", "-o", recording, "--")
  ruby = [Lab::RUBY, "-e", ""]
  # what => [command, what it is compared with]
  commands = {
    "ruby -e ''" => [ruby],
    "… -rrrtrace" => [[Lab::RUBY, "-I", Lab::LIB, "-rrrtrace", "-e", ""], "ruby -e ''"],
    "rrtrace --no-window ruby -e ''" => [[*traced, *ruby], "ruby -e ''"],
    "true" => [["true"]],
    "rrtrace --no-window true" => [[*traced, "true"], "true"]
  }
  times = commands.transform_values { [] }
  rounds.times { |round| commands.to_a.rotate(round).each { |name, (command, _)| times[name] << run(*command) } }
  added = commands.filter_map { |name, (_, other)| [name, times[name].zip(times[other]).map { |mine, theirs| mine - theirs }] if other }.to_h
  rows = [["command", "ms", "ms added", "middle half", "CPU ms added"]]
  commands.each_key do |name|
    row = [name, format("%.1f", median_of(times[name], :clock_ms))]
    if added[name]
      low, high = Lab.quartiles(added[name].map(&:clock_ms))
      row += [format("%.1f", median_of(added[name], :clock_ms)), format("%.1f–%.1f", low, high), format("%.1f", median_of(added[name], :cpu_ms))]
    end
    rows << row + [""] * (rows.first.size - row.size)
  end
  Lab.table(rows)
  puts
  {"require_ms" => "… -rrrtrace", "ruby_ms" => "rrtrace --no-window ruby -e ''", "true_ms" => "rrtrace --no-window true"}.each do |key, name|
    puts "start.#{key}: #{median_of(added[name], :clock_ms).round(2)}"
  end
end
