# frozen_string_literal: true

require "etc"
require "fileutils"
require "rbconfig"

# What the benchmarks that run Ruby programs share: where things are, what has to be built first, medians, tables.
module Lab
  ROOT = File.expand_path("../..", __dir__)
  BUILD = File.join(ROOT, "build/bench")
  LIB = File.join(ROOT, "lib")
  RUBY = RbConfig.ruby

  # Of this process that a program which is measured must not inherit.
  CLEAN = ENV.keys.grep(/\A(RRTRACE|RUBYOPT\z|RUBYLIB\z|BUNDLE)/).to_h { |name| [name, nil] }.freeze

  class << self
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def median(values)
      sorted = values.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    # The middle half of the values.
    def quartiles(values)
      sorted = values.sort
      [sorted[(sorted.size - 1) / 4], sorted[(sorted.size * 3 - 1) / 4]]
    end

    # Rows of strings: the first column is text, the others are figures.
    def table(rows)
      widths = rows.transpose.map { |column| column.map(&:size).max }
      rows.each do |row|
        puts row.each_with_index.map { |cell, i| i.zero? ? cell.ljust(widths[i]) : cell.rjust(widths[i]) }.join("  ").rstrip
      end
    end

    # What the figures were measured on: one line.
    def machine
      cpu = File.read("/proc/cpuinfo")[/^model name\s*:\s*(.*)/, 1] || RbConfig::CONFIG["host_cpu"]
      load = File.read("/proc/loadavg").to_f
      "#{RUBY_DESCRIPTION}; #{Etc.nprocessors} cores of #{cpu}; Linux #{Etc.uname[:release]}; #{compiler}; load #{load} at the start"
    end

    # Builds an extension in build/bench/NAME, unless it is newer than all its sources. Returns the folder.
    def extension(name, extconf, sources, so: "#{name}.so", flags: "")
      folder = File.join(BUILD, name)
      made = File.join(folder, so)
      return folder if File.exist?(made) && sources.all? { |path| File.mtime(path) <= File.mtime(made) }

      FileUtils.mkdir_p(folder)
      run!([RUBY, extconf], folder, "building #{name}")
      run!(["make", "clean"], folder, "building #{name}")
      makefile = File.join(folder, "Makefile")
      File.write(makefile, File.read(makefile).sub(/^CFLAGS .*$/) { "#{$&} #{flags}" }) unless flags.empty?
      run!(["make"], folder, "building #{name}")
      FileUtils.mkdir_p(File.dirname(made))
      FileUtils.mv(File.join(folder, File.basename(so)), made) unless File.dirname(made) == folder
      FileUtils.touch(made)
      folder
    end

    # The command line of our own program.
    def rrtrace(*arguments) = [RUBY, File.join(ROOT, "exe/rrtrace"), *arguments]

    def hooks
      folder = File.join(__dir__, "hooks")
      extension("bench_hooks", File.join(folder, "extconf.rb"), Dir[File.join(folder, "*.{c,rb}"), File.join(ROOT, "wire/*.h")])
    end

    # The gems that only benchmarks need, in a place of their own. Nil, and a line, when they can't be had.
    def gems
      home = File.join(BUILD, "gems")
      gemfile = File.join(ROOT, "bench/Gemfile")
      stamp = File.join(home, "complete")
      place = File.join(home, "ruby", RbConfig::CONFIG["ruby_version"])
      return place if File.exist?(stamp) && File.read(stamp) == File.read(gemfile) + RUBY_DESCRIPTION

      warn "Installing the benchmarks' gems into #{home} (minutes, once) …"
      FileUtils.mkdir_p(home)
      FileUtils.cp(gemfile, File.join(home, "Gemfile")) # the lock file goes beside it
      FileUtils.rm_f(File.join(home, "Gemfile.lock"))
      environment = CLEAN.merge("BUNDLE_PATH" => home, "BUNDLE_GEMFILE" => File.join(home, "Gemfile"), "BUNDLE_SILENCE_ROOT_WARNING" => "1",
        "PATH" => "#{File.dirname(RUBY)}:#{ENV.fetch("PATH", "")}", "BUNDLE_JOBS" => Etc.nprocessors.to_s)
      log = File.join(home, "install.log")
      unless system(environment, RUBY, "-S", "bundle", "install", out: log, err: [:child, :out], chdir: home)
        warn "The benchmarks' gems can't be installed (#{log}): doing without."
        return
      end
      File.write(stamp, File.read(gemfile) + RUBY_DESCRIPTION)
      place
    end

    def run!(command, folder, what)
      log = File.join(folder, "build.log")
      system(CLEAN, *command, chdir: folder, out: log, err: [:child, :out]) or abort "#{what} failed: #{log}"
    end

    private

    def compiler
      line = IO.popen([RbConfig::CONFIG["CC"].split.first, "--version"], err: File::NULL, &:gets).to_s
      line[/\A(\S+)/, 1].to_s + " " + line[/(\d+\.\d+\.\d+)/, 1].to_s
    end
  end

  # A stretch of this process's work: how long it took on the clock, and what of that was its own. A single thread's own time
  # is the clock's less what the thread was ready but had no core (schedstat's second figure): with what it waited for others
  # by sleeping. Where threads wait for one another those times overlap, so theirs is the CPU time of all.
  class Stretch
    attr_reader :wall_ns, :own_ns

    def self.of
      stretch = new
      yield
      stretch.finish
    end

    def initialize
      @begin = look
    end

    def finish
      @wall_ns, queued_ns, cpu_ns = look.zip(@begin).map { |now, before| now - before }
      @own_ns = (Thread.list.size > 1) ? cpu_ns : @wall_ns - queued_ns
      self
    end

    private

    def look
      queued_ns = File.read("/proc/self/task/#{Thread.current.native_thread_id}/schedstat").split[1].to_i
      [Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond), queued_ns,
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)]
    end
  end
end
