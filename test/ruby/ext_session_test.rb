# frozen_string_literal: true

require_relative "ext_help"

# Sessions begin, end and break without harm to the program.
class ExtSessionTest < Minitest::Test
  include ExtHelp

  def shared_memory = Dir.exist?("/dev/shm") ? Dir.children("/dev/shm").grep(/rrtrace/) : []

  def test_a_stream_begins_with_its_process_and_ends_with_goodbye
    stream = traced_one("p Rrtrace::Native.joined?\np((Rrtrace::Native.join('/x', 65536, false, true, false) rescue $!.class))")
    assert_equal "true\nRrtrace::Error\n", @ran.out
    assert_equal 1, stream.process[:source], "positions are frame addresses"
    assert_equal stream.pid, stream.process[:pid]
    assert_match(/\Aruby \d/, stream.process[:ruby])
    assert_includes stream.process[:argv], temp_path("traced.rb")
    assert stream.said_goodbye
    assert_predicate stream, :closed?
    assert_operator stream.defines(:clock).size, :>=, 2
    assert_empty shared_memory
  end

  def test_leaving_twice_and_joining_again_work
    streams = traced(<<~RUBY)
      def a = 1
      a
      p Rrtrace::Native.leave(5000), Rrtrace::Native.leave(5000), Rrtrace::Native.joined?
      a
      Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      Thread.new { a }.join
    RUBY
    assert_equal "true\nfalse\nfalse\n", @ran.out
    assert_equal [1, 1], streams.map { _1.calls["Object#a"] }
    assert_equal [[1], [1, 2]], streams.map { _1.thread_names.keys.sort }
  end

  def test_a_visualizer_that_hangs_up_after_its_last_word_was_not_killed
    reader = RingReader.new(hangs_up: true)
    traced("Rrtrace::Native.leave(5000)\n" + <<~RUBY, slots: 1 << 13, reader:)
      300.times do
        Rrtrace::Native.join(ENV.fetch("SESSION"), 8192, false, true, false)
        raise "no session" unless Rrtrace::Native.leave(10_000)
      end
    RUBY
    assert_equal 301, reader.streams.count(&:said_goodbye)
    assert_empty @ran.err
  end

  def test_signals_do_not_keep_a_program_from_joining
    stream = traced_one("def a = 1\n10.times { a }\nstop = true\npest.join", reader: RingReader.new(answers_after: 0.3), before: <<~RUBY)
      stop = heard = false
      trap(:USR1) { heard = true }
      pest = Thread.new { Process.kill(:USR1, $$) && sleep(0.001) until stop }
      sleep 0.001 until heard
    RUBY
    assert_equal 10, stream.calls["Object#a"]
  end

  def test_what_a_signal_raises_while_a_program_joins_is_raised_and_it_may_join_again
    reader = RingReader.new(answers_after: 0.3)
    traced("def a = 1\n10.times { a }", reader:, before: <<~RUBY)
      trap(:USR1) { raise "stop that" }
      Thread.new { sleep 0.1; Process.kill(:USR1, $$) }
      begin
        Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
        puts "joined"
      rescue => error
        puts error.message
      end
    RUBY
    assert_equal "stop that\n", @ran.out
    assert_equal 10, reader.streams.sum { _1.calls["Object#a"] }
  end

  def test_an_interrupt_that_is_held_back_lets_a_program_join
    traced("", reader: RingReader.new(answers_after: 0.3), before: <<~RUBY)
      Thread.handle_interrupt(RuntimeError => :never) do
        main = Thread.current
        Thread.new { main.raise("later") }.join
        Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
        Rrtrace::Native.leave(5000)
        puts "joined"
      end rescue puts $!.message
    RUBY
    assert_equal "joined\nlater\n", @ran.out
  end

  def test_a_signal_does_not_keep_a_forked_child_from_joining
    streams = traced(<<~RUBY, reader: RingReader.new(answers_after: 0.3))
      def a = 1
      trap(:USR1) { }
      child = fork { 10.times { a } }
      sleep 0.1
      Process.kill(:USR1, child)
      Process.wait(child)
    RUBY
    assert_equal 10, streams.sum { _1.calls["Object#a"] }
  end

  def test_a_child_of_a_session_that_is_over_is_no_more_hooked
    over = RingReader.new
    streams = traced(<<~RUBY, before: "def a = 1", env: {"OVER" => over.path})
      Rrtrace::Native.leave(5000)
      Rrtrace::Native.join(ENV.fetch("OVER"), 65536, false, true, false)
      File.unlink(ENV.fetch("OVER"))
      Process.wait(fork do
        a
        Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
        10.times { a }
        Rrtrace::Native.leave(5000)
      end)
    RUBY
    assert_equal 10, streams.sum { _1.calls["Object#a"] }
  ensure
    over&.close
  end

  def test_a_full_ring_loses_nothing
    stream = traced_one("def a = 1\n30_000.times { a }", slots: 1 << 13)
    assert_equal 30_000, stream.calls["Object#a"]
    assert_equal 0, stream.dropped
    assert_operator stream.slot_total, :>, 1 << 13
  end

  def test_dropping_counts_what_it_drops_and_keeps_the_rest_sound
    reader = RingReader.new(drain: false)
    waker = Thread.new do
      sleep 0.01 until reader.streams.any? && reader.streams.first.dropped > 1000
      reader.draining = true
    end
    stream = traced_one(<<~RUBY, slots: 1 << 13, drop: true, reader:)
      def a = b
      def b = 1
      def late_one = 2
      t = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.3
      a while Process.clock_gettime(Process::CLOCK_MONOTONIC) < t
      5.times { late_one; sleep 0.02 }
    RUBY
    waker.join
    told = stream.defines(:dropped).sum { |_, payload| payload.unpack1("Q<") }
    assert_operator told, :>, 1000
    assert_operator told, :<=, stream.dropped
    assert_operator stream.calls["Object#late_one"], :>=, 1
    first_drop = stream.events.index { _1.kind == :define && _1.number >> 28 == 7 }
    assert_equal :switch, stream.events[first_drop + 1].kind, "it says again where it runs"
  end

  def test_killing_the_reader_frees_a_program_that_waits_on_a_full_ring
    path = temp_path("reader.path")
    child = fork do
      reader = RingReader.new(drain: false)
      File.write("#{path}.new", reader.path)
      File.rename("#{path}.new", path)
      sleep
    end
    wait_until("the reader") { File.exist?(path) }
    session = File.read(path)
    program = write("waits.rb", <<~RUBY)
      require "rrtrace/rrtrace"
      def a = 1
      Rrtrace::Native.join(ENV.fetch("SESSION"), 8192, false, true, false)
      Thread.new { loop { sleep 0.001 } }
      $stdout.sync = true
      puts "full"
      20_000.times { a }
      puts Process.clock_gettime(Process::CLOCK_MONOTONIC)
      sleep 0.05
      p Rrtrace::Native.joined?, Rrtrace::Native.leave(100)
    RUBY
    Open3.popen2e(clean_environment.merge("SESSION" => session), RbConfig.ruby, "-I", LIB, program) do |_, out, waiter|
      assert_equal "full\n", out.gets
      assert_nil IO.select([out], nil, nil, 0.3), "the program waits"
      killed = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      Process.kill(:KILL, child)
      Process.wait(child)
      said, (freed, *rest) = out.readlines(chomp: true).partition { |line| line.start_with?("rrtrace:") }
      assert_operator freed.to_f - killed, :<, 1.0
      assert_equal ["rrtrace: the visualizer was killed: this program runs on untraced"], said
      assert_equal %w[false false], rest, "nothing else is printed"
      assert_predicate waiter.value, :success?
    end
    refute_path_exists session, "the dead session's socket is removed"
    refute_path_exists File.dirname(session)
    assert_empty shared_memory
  ensure
    begin
      Process.kill(:KILL, child)
    rescue
      nil
    end
  end

  def test_forked_children_trace_into_rings_of_their_own
    streams = traced(<<~RUBY)
      def a = 1
      def deep(n) = n.zero? ? fork { a; fork { a; a; exit! 0 }; Process.wait; a } : deep(n - 1)
      Process.wait(deep(20))
      IO.popen("-") { |io| io ? io.read : a }
      a
    RUBY
    assert_equal 4, streams.size
    assert_equal [1, 1, 2, 2], streams.map { _1.calls["Object#a"] }.sort
    assert_equal streams.map(&:pid).sort, streams.map { _1.process[:pid] }.sort
    child = streams.find { |s| s.spans.count { |x| x.at_start && x.name == "Object#deep" } == 21 && s.calls["Object#a"] == 2 && s.ppid == streams.first.pid }
    refute_nil child, "a child's inherited stack is there"
    assert(child.spans_named("Object#a").all? { _1.ancestors.count("Object#deep") == 21 })
  end

  def test_a_daemon_goes_on_tracing
    streams = traced("def a = 1\na\nProcess.daemon(true, true)\na\na")
    assert_equal [1, 2], streams.map { _1.calls["Object#a"] }.sort
  end

  def test_spawned_and_replaced_programs_run_untouched
    streams = traced(<<~RUBY)
      p system("exit 3"), $?.exitstatus, `echo hi`
      def last = 1
      last
      exec(RbConfig.ruby, "-e", "puts :new")
    RUBY
    assert_equal "false\n3\n\"hi\\n\"\n", @ran.out.lines.first(3).join
    assert_includes @ran.out, "new"
    assert_equal 1, streams.size
    assert_equal 1, streams.first.calls["Object#last"], "what was sent before exec is there"
  end

  def test_a_program_that_kills_itself_leaves_what_it_sent
    streams = traced("def pace = 1\n500.times { pace }\nProcess.kill(:KILL, $$)\nsleep", status: nil)
    assert_equal 9, @ran.status.termsig
    assert_equal 500, streams.first.calls["Object#pace"]
    assert_empty shared_memory
  end

  def test_a_program_that_closes_all_descriptors_runs_on
    reader = RingReader.new
    program = write("closes.rb", <<~RUBY)
      require "rrtrace/rrtrace"
      def a = 1
      Rrtrace::Native.join(ENV.fetch("SESSION"), 8192, false, true, false)
      (3..200).each { |fd| IO.for_fd(fd).close rescue nil }
      100_000.times { a }
      puts "done"
    RUBY
    ran = run_program(RbConfig.ruby, "-I", LIB, program, env: {"SESSION" => reader.path})
    assert_equal "done\n", ran.out, ran.err
  ensure
    reader.close
  end

  def refusal(path)
    run_program(RbConfig.ruby, "-I", LIB, write("refused.rb", <<~RUBY), env: {"SESSION" => path})
      require "rrtrace/rrtrace"
      begin
        Rrtrace::Native.join(ENV.fetch("SESSION"), 65536, false, true, false)
      rescue Rrtrace::Error => e
        puts e.message
      end
      p Rrtrace::Native.joined?
    RUBY
  end

  def test_a_refusal_is_one_clear_error
    reader = RingReader.new(answer: "too many processes")
    assert_equal "the visualizer refused this process: too many processes\nfalse\n", refusal(reader.path).out
  ensure
    reader.close
  end

  def test_a_silent_server_is_one_clear_error
    reader = RingReader.new(answer: :silent)
    assert_equal "the visualizer at #{reader.path} did not answer within 10 s\nfalse\n", refusal(reader.path).out
  ensure
    reader.close
  end

  def test_no_session_is_one_clear_error
    assert_equal "no session at /nonexistent/session: No such file or directory\nfalse\n", refusal("/nonexistent/session").out
  end

  def test_a_session_of_another_user_is_refused
    skip "needs root to become another user" unless Process.uid.zero?
    child = fork do
      Process::UID.change_privilege(65534)
      ENV["TMPDIR"] = "/tmp"
      reader = RingReader.new
      File.chmod(0o777, reader.folder, reader.path)
      $stdout.flush
      IO.write("/tmp/rrtrace-foreign-#{Process.ppid}", reader.path)
      sleep 20
      exit!
    end
    told = "/tmp/rrtrace-foreign-#{Process.pid}"
    wait_until("the reader") { File.size?(told) }
    assert_match(/\Athe visualizer at .* belongs to another user\nfalse\n\z/, refusal(File.read(told)).out)
  ensure
    if child
      Process.kill(:KILL, child)
      Process.wait(child)
      FileUtils.rm_rf(File.dirname(File.read(told)))
      FileUtils.rm_f(told)
    end
  end

  def test_loading_starts_nothing
    ran = run_program(RbConfig.ruby, "-I", LIB, write("load.rb", <<~RUBY))
      before = Dir.children("/proc/self/task").size
      require "rrtrace/rrtrace"
      p Dir.children("/proc/self/task").size - before, Rrtrace::Native.joined?, Rrtrace::Native.leave(0)
    RUBY
    assert_equal "0\nfalse\nfalse\n", ran.out
  end

  def test_an_abandoned_session_is_swept_by_the_next_one
    stale = File.join("/tmp", "rrtrace-#{Process.uid}-sTaLe1")
    FileUtils.rm_rf(stale)
    Dir.mkdir(stale, 0o700)
    server = Socket.new(:UNIX, :SEQPACKET)
    server.bind(Addrinfo.unix(File.join(stale, "session"), :SEQPACKET))
    server.close
    File.utime(Time.now - 60, Time.now - 60, stale)
    ran = run_program(RbConfig.ruby, "-I", LIB, write("sweep.rb", <<~RUBY), env: {"TMPDIR" => "/tmp", "XDG_RUNTIME_DIR" => nil})
      require "rrtrace/rrtrace"
      Rrtrace::Native.open_session("/bin/false", []) rescue puts $!.message
    RUBY
    assert_equal "the visualizer /bin/false could not start (exit status 1)\n", ran.out
    refute_path_exists stale
    assert_empty Dir.glob("/tmp/rrtrace-#{Process.uid}-*/session").select { !File.socket?(_1) }
  end
end
