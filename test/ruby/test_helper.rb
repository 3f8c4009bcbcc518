# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "tmpdir"

# A shell's background job is started with both ignored, and the programs under test would inherit that.
%w[INT QUIT].each { |signal| trap(signal, "DEFAULT") }

# What all Ruby tests share: folders that vanish, programs run in a clean environment, and a stand-in for the visualizer.
module TestHelp
  ROOT = File.expand_path("../..", __dir__)
  LIB = File.join(ROOT, "lib")
  EXE = File.join(ROOT, "exe/rrtrace")
  # A hang is a failure with a name. Nothing here takes more than a few seconds.
  LIMIT_SECONDS = 50

  Ran = Struct.new(:out, :err, :status) do
    def code = status.exitstatus
  end

  def teardown
    super
    FileUtils.rm_rf(@temp) if @temp
  end

  # A path in a folder of this test's own.
  def temp_path(name = "")
    @temp ||= Dir.mktmpdir("rrtrace-test")
    File.join(@temp, name)
  end

  def write(name, text, mode: 0o644)
    path = temp_path(name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    File.chmod(mode, path)
    path
  end

  # The environment of a program under test: nothing of ours, no display, the stand-in as visualizer.
  def clean_environment
    ours = ENV.keys.grep(/\A(RRTRACE|RUBYOPT\z|RUBYLIB\z|GEM_|BUNDLE|DISPLAY\z|WAYLAND_DISPLAY\z)/)
    ours.to_h { |name| [name, nil] }.merge("RRTRACE_VISUALIZER" => fake_visualizer)
  end

  # Runs a program to its end. env is laid over clean_environment.
  def run_program(*command, env: {}, stdin: "", chdir: temp_path, seconds: LIMIT_SECONDS)
    out, err, status = nil
    limit(command, seconds) do |started|
      Open3.popen3(clean_environment.merge(env), *command, chdir: chdir) do |input, output, error, waiter|
        started.call(waiter.pid)
        readers = [output, error].map { |io| Thread.new { io.read } }
        input.write(stdin)
        input.close
        out, err = readers.map(&:value)
        status = waiter.value
      end
    end
    Ran.new(out: out, err: err, status: status)
  end

  # Runs Ruby code that has lib/ on its load path.
  def run_ruby(code, *arguments, env: {}, **rest)
    run_program(RbConfig.ruby, "-w", "-I", LIB, write("code.rb", code), *arguments, env: env, **rest)
  end

  def run_rrtrace(*arguments, **rest)
    run_program(RbConfig.ruby, "-w", EXE, *arguments, **rest)
  end

  # A program that stands in for rrtrace-visualizer; see support/fake_visualizer.rb. done: "silent" never answers BYE.
  def fake_visualizer(done: "done")
    write("visualizer-#{done}", <<~SH, mode: 0o755)
      #!/bin/sh
      unset RUBYOPT RUBYLIB # it must not be traced itself
      case $1 in --version) echo "rrtrace-visualizer stand-in"; echo "window: no"; exit ;; esac
      exec "#{RbConfig.ruby}" --disable=gems "#{__dir__}/support/fake_visualizer.rb" "#{log_path}" #{done} "$@"
    SH
  end

  def log_path = temp_path("visualizer.log")

  def log = File.exist?(log_path) ? File.readlines(log_path, chomp: true) : []

  # The log when the stand-in has ended: all sessions in it are over.
  def whole_log(sessions: 1)
    wait_until("#{sessions} session(s) to be over") { log.count("over") == sessions }
    log
  end

  def hellos(lines) = lines.grep(/\Ahello /)

  def wait_until(what)
    deadline = now + LIMIT_SECONDS
    until yield
      flunk "waited #{LIMIT_SECONDS} s for #{what}; the log:\n#{log.join("\n")}" if now > deadline
      sleep 0.01
    end
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def limit(command, seconds)
    watchdog = nil
    expired = false
    started = lambda do |pid|
      watchdog = Thread.new do
        sleep seconds
        expired = true
        Process.kill(:KILL, pid)
      end
    end
    yield started
    flunk "#{command.join(" ")} did not end in #{seconds} s" if expired
  ensure
    watchdog&.kill
  end
end
