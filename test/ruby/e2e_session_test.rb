# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/picture"
require_relative "support/real"

# The real extension and the real visualizer, without a window.
class E2ESessionTest < Minitest::Test
  include TestHelp
  prepend RealVisualizer

  BACKGROUND = [14, 17, 23] # as the view draws it; the corners of a picture show it

  FILM = <<~RUBY
    def alpha = sleep(0.3)
    def beta = sleep(0.7)
    alpha
    beta
  RUBY

  # What a process's open descriptors are.
  def descriptors(pid)
    Dir["/proc/#{pid}/fd/*"].filter_map do |fd|
      File.readlink(fd)
    rescue SystemCallError
      nil # closed meanwhile
    end
  end

  def test_a_picture_is_there_when_the_command_returns
    shot = temp_path("shot.png")
    ran = run_rrtrace("--no-window", "--shot", shot, write("film.rb", FILM))
    assert_equal 0, ran.code, ran.err
    assert_equal "", ran.out
    assert_match(/picture written to #{Regexp.escape(shot)}/, ran.err)
    picture = Picture.of_file(shot)
    assert_equal [1280, 720], [picture.width, picture.height]
    assert_operator picture.colored, :>, 5_000, "boxes, and not just text"
  end

  def test_the_three_ways_in_all_trace
    program = write("program.rb", "require 'rrtrace'\ndef work = 3.times.map { |i| i }\nwork\nputs Rrtrace.started?\n")
    ways = {
      "command" => -> { run_rrtrace("--no-window", "--shot", temp_path("command.png"), program) },
      "environment" => -> do
        run_program(RbConfig.ruby, "-I", LIB, program, env: {"RRTRACE" => "1", "RRTRACE_SHOT" => temp_path("environment.png")})
      end,
      "code" => -> do
        run_ruby(<<~RUBY)
          require "rrtrace"
          Rrtrace.trace(shot: #{temp_path("code.png").inspect}) { load #{program.inspect} }
          puts File.exist?(#{temp_path("code.png").inspect})
        RUBY
      end
    }
    ways.each do |name, way|
      ran = way.call
      assert_equal 0, ran.code, ran.err
      assert_equal "true", ran.out.lines.first.chomp, "#{name}: started?"
      assert_path_exists temp_path("#{name}.png")
    end
  end

  def test_the_command_keeps_its_status_input_and_output
    program = write("filter.rb", "puts gets.upcase; warn 'aside'; exit 7")
    ran = run_rrtrace("--no-window", "--shot", temp_path("s.png"), program, stdin: "through\n")
    assert_equal 7, ran.code
    assert_equal "THROUGH\n", ran.out
    assert_includes ran.err, "aside"
  end

  def test_a_program_that_is_no_ruby_ends_the_session
    ran = run_rrtrace("--no-window", "--", "sh", "-c", "exit 3")
    assert_equal 3, ran.code
  end

  def test_children_join_the_session_and_leave_nothing
    program = write("family.rb", <<~RUBY)
      def leaf(n) = n
      def child = 50.times { |i| leaf(i) }
      pids = 3.times.map { fork { child } }
      pids.each { Process.wait(_1) }
      system(#{RbConfig.ruby.inspect}, "-e", "def inner = 1; inner")
      puts $?.exitstatus
    RUBY
    ran = run_rrtrace("--no-window", "--shot", temp_path("s.png"), program)
    assert_equal "0\n", ran.out, ran.err
    assert_path_exists temp_path("s.png")
  end

  def test_kill_9_of_the_program_ends_the_session_with_its_picture
    program = write("endless.rb", "def spin = 100.times { |i| i.to_s }\nputs 'ready'\n$stdout.flush\nloop { spin }")
    pid, output = start_rrtrace("--no-window", "--shot", temp_path("s.png"), program)
    wait_for_line(output, "ready")
    Process.kill(:KILL, pid)
    assert_equal 9, wait_for_exit(pid).termsig
    wait_until("the picture") { File.exist?(temp_path("s.png")) }
  end

  def test_ctrl_c_reaches_the_program_alone
    program = write("patient.rb", "begin; puts 'ready'; $stdout.flush; sleep; rescue Interrupt; puts 'asked to stop'; exit 4; end")
    pid, output = start_rrtrace("--no-window", "--shot", temp_path("s.png"), program, pgroup: true)
    wait_for_line(output, "ready")
    Process.kill(:INT, -Process.getpgid(pid)) # as a terminal does: to the whole group
    assert_equal 4, wait_for_exit(pid).exitstatus
    assert_includes File.read(output), "asked to stop"
    assert_path_exists temp_path("s.png")
  end

  def test_kill_9_of_the_visualizer_frees_a_program_that_waits_for_it
    program = write("busy.rb", <<~RUBY)
      def tick = nil
      puts "ready"
      $stdout.flush
      2_000_000.times { tick } # 4 million events: the ring of 8,192 is full at once
      puts "done"
    RUBY
    pid, output = start_rrtrace("--no-window", "--buffer", "128K", program)
    wait_for_line(output, "ready")
    wait_until("the visualizer") { visualizer_pids.any? }
    visualizer = visualizer_pids.first
    Process.kill(:STOP, visualizer) # nobody reads any more
    sleep 0.5
    refute_includes File.read(output), "done", "it must be waiting"
    Process.kill(:KILL, visualizer)
    assert_equal 0, wait_for_exit(pid).exitstatus
    assert_includes File.read(output), "done"
  end

  # As daemons written by hand do. The numbers are the program's own then: nothing of ours may write to them or close them.
  CLOSES_ALL = <<~RUBY
    def close_all = (3..40).each { |fd| IO.for_fd(fd).close rescue nil }
    def fill(folder) = 12.times.map { |i| File.open(File.join(folder, "own\#{i}"), "w") }
  RUBY

  def test_files_of_a_program_that_closed_all_descriptors_stay_its_own
    program = write("closes.rb", CLOSES_ALL + <<~RUBY)
      close_all
      files = fill(ARGV[0])
      sleep 1.2 # the watcher has looked
      files.each { |file| file.write("own\n") }
      pid = fork { files.each { |file| file.syswrite("child\n") } }
      Process.wait(pid)
      print $?.exitstatus
    RUBY
    ran = run_rrtrace("--no-window", program, temp_path)
    assert_equal "0", ran.out, ran.err
    12.times { |i| assert_equal %W[child\n own\n], File.binread(temp_path("own#{i}")).lines.uniq.sort, "own#{i}" }
  end

  def test_a_program_that_closed_all_descriptors_runs_to_its_end
    program = write("closes.rb", CLOSES_ALL + <<~RUBY)
      def tick = nil
      close_all
      files = fill(ARGV[0])
      sleep 1.5 # the watcher has looked
      1_000_000.times { tick } # more than the ring of 8,192 holds
      print "end"
    RUBY
    ran = run_rrtrace("--no-window", "--buffer", "128K", program, temp_path)
    assert_equal ["end", 0], [ran.out, ran.code], ran.err
    assert_match(/this program has closed rrtrace's connection.*: it runs on untraced/, ran.err)
  end

  # It closes the connection that it has just made; the visualizer hears that and lets it go.
  def test_a_child_that_closes_all_descriptors_runs_to_its_end
    program = write("closes.rb", CLOSES_ALL + <<~RUBY)
      def tick = nil
      reader, writer = IO.pipe
      pid = fork do
        $stdout.reopen(writer.dup)
        close_all
        1_000_000.times { tick } # more than the ring of 8,192 holds
        $stdout.syswrite("end")
      end
      writer.close
      Process.wait(pid)
      print reader.read, $?.exitstatus
    RUBY
    ran = run_rrtrace("--no-window", "--buffer", "128K", program)
    assert_equal ["end0", 0], [ran.out, ran.code], ran.err
  end

  def test_a_signal_ends_a_program_that_waits_for_a_visualizer_that_stands_still
    program = write("busy.rb", "def tick = nil\nputs 'ready'\n$stdout.flush\nloop { tick }\n")
    pid, output = start_rrtrace("--no-window", "--buffer", "128K", program)
    wait_for_line(output, "ready")
    wait_until("the visualizer") { visualizer_pids.any? }
    visualizer = visualizer_pids.first
    Process.kill(:STOP, visualizer)
    wait_for_line(output, "waiting for the visualizer (process #{visualizer}) to make room")
    Process.kill(:TERM, pid)
    assert_equal 15, wait_for_exit(pid).termsig
  ensure
    Process.kill(:CONT, visualizer) if visualizer
  end

  def test_the_visualizer_lets_go_of_programs_that_end_without_a_goodbye
    program = write("execs.rb", <<~RUBY)
      60.times { Process.wait(fork { exec("true") }) }
      puts "ready"
      $stdout.flush
      sleep
    RUBY
    pid, output = start_rrtrace("--no-window", program)
    wait_for_line(output, "ready")
    wait_until("the children's sockets to be closed") do
      descriptors(visualizer_pids.first).count { |target| target.start_with?("socket") } < 10
    end
    Process.kill(:KILL, pid)
    wait_for_exit(pid)
  end

  def test_the_visualizer_keeps_nothing_open_of_who_started_it
    reader, writer = IO.pipe
    pid, output = start_rrtrace("--no-window", write("waits.rb", "puts 'ready'; $stdout.flush; sleep"), 9 => writer)
    writer.close
    wait_for_line(output, "ready")
    held = descriptors(visualizer_pids.first)
    refute_includes held, "pipe:[#{reader.stat.ino}]"
    Process.kill(:KILL, pid)
    wait_for_exit(pid)
  ensure
    reader&.close
  end

  def test_starting_and_stopping_runs_no_sigchld_trap_and_is_no_child_of_the_program
    ran = run_ruby(<<~RUBY, env: {"RRTRACE_WINDOW" => "0"})
      require "rrtrace"
      trap(:CHLD) { print "trap " }
      3.times { Rrtrace.trace { 1 } }
      begin
        p Process.wait(-1)
      rescue Errno::ECHILD
        print "none"
      end
    RUBY
    assert_equal "none", ran.out, ran.err
  end

  def test_a_tracepoint_left_on_sees_nothing_of_ours_at_the_end
    program = write("left_on.rb", <<~RUBY)
      $stdout.sync = true
      TracePoint.new(:call, :line, :c_call) { |tp| $stdout.write(tp.path, "\n") if tp.path.include?("rrtrace") }.enable
      at_exit { 1 + 1 }
    RUBY
    assert_equal "", run_rrtrace("--no-window", program, chdir: "/").out.lines.grep_v(/left_on/).join
  end

  def test_a_wrong_option_of_the_visualizer_is_told_in_one_line
    ran = run_program(PATH, "--memory=lots")
    assert_equal 2, ran.code
    assert_equal "rrtrace-visualizer: --memory=lots: not a valid value; see --help\n", ran.err
    ran = run_program(PATH)
    assert_equal 2, ran.code
    assert_equal 1, ran.err.lines.size
  end

  # Emptying the ring comes first. The best of three: another program on the machine may keep the drain from its core for
  # the tenth of a second that the ring lasts, and the program then waits, as it should.
  def test_a_burst_of_20_million_calls_never_waits
    program = write("burst.rb", "def nop = nil\ni = 0\nwhile i < 6_700_000\n  nop\n  i += 1\nend\n") # with < and + three calls a turn
    waits = Array.new(3) do
      ran = run_rrtrace("--no-window", "--stats", program)
      events, waited, dropped = ran.err.match(/(\d+) events of 1 streams; programs waited (\d+) times; (\d+) events dropped/)&.captures&.map(&:to_i)
      assert_operator events, :>=, 40_000_000, ran.err
      assert_equal 0, dropped
      break [0] if waited.zero?

      waited
    end
    assert_equal 0, waits.min, "waits in each run: #{waits}"
  end
end
