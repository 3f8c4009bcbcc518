# frozen_string_literal: true

require "json"

# For tests that run the real extension with the real visualizer.
module RealVisualizer
  PATH = File.join(TestHelp::ROOT, "build/release/rrtrace-visualizer")

  def clean_environment
    super.merge("RRTRACE_VISUALIZER" => PATH, "RRTRACE_VALIDATION" => "1", "TMPDIR" => temp_path, "XDG_RUNTIME_DIR" => nil,
      "XDG_STATE_HOME" => temp_path("state"), "VISUAL" => nil, "EDITOR" => nil)
  end

  def setup
    super
    @shm_before = shared_memory
  end

  # After every test: no process, socket or shared memory may be left. What is still ending gets some seconds.
  def teardown
    # A test that failed half-way says why by itself.
    if passed?
      wait_until("the visualizer to end") { visualizer_pids.empty? }
      assert_empty Dir[temp_path("rrtrace-*/")], "session folders"
      assert_empty shared_memory - @shm_before, "entries in /dev/shm"
    end
    visualizer_pids.each { |pid| Process.kill(:KILL, pid) }
    programs.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) } # of a test that failed half-way
    super
  end

  # Those that work for this test, told by the folder of their socket.
  def visualizer_pids
    Dir["/proc/[0-9]*/cmdline"].filter_map do |path|
      line = File.binread(path).split("\0")
      line.first == PATH && line.any? { |word| word.start_with?("--socket=#{temp_path}") } && path[/\d+/].to_i
    rescue SystemCallError
      nil
    end
  end

  def shared_memory = Dir["/dev/shm/*"].grep(/rrtrace/)

  # Starts a command in the background: [pid, file with its output].
  def start_rrtrace(*arguments, env: {}, **rest)
    output = temp_path("output-#{@started = @started.to_i + 1}")
    pid = Process.spawn(clean_environment.merge(env), RbConfig.ruby, TestHelp::EXE, *arguments,
      out: output, err: [:child, :out], in: File::NULL, chdir: temp_path, **rest)
    programs << pid
    [pid, output]
  end

  # Runs the code to its end, recorded; returns the recording's path.
  def record(code, name: "made.rrt", options: [], **rest)
    ran = run_rrtrace("--no-window", "-o", temp_path(name), *options, write("program.rb", code), **rest)
    assert_equal 0, ran.code, ran.err
    temp_path(name)
  end

  # A recording's report; what was said beside it is in @report_said.
  def report(path, *options)
    ran = run_rrtrace("report", path, "--format=json", *options)
    assert_equal 0, ran.code, ran.err
    @report_said = ran.err
    JSON.parse(ran.out)
  end

  def programs = @programs ||= []

  def wait_for_exit(pid, seconds: TestHelp::LIMIT_SECONDS)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    loop do
      done, status = Process.wait2(pid, Process::WNOHANG)
      programs.delete(pid) if done
      return status if done
      if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        programs.delete(pid)
        Process.kill(:KILL, pid)
        Process.wait(pid)
        flunk "process #{pid} did not end in #{seconds} s"
      end
      sleep 0.005
    end
  end

  def wait_for_line(file, line)
    wait_until("#{line.inspect} in the output") { File.exist?(file) && File.read(file).include?(line) }
  end
end
