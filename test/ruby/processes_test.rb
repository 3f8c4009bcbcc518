# frozen_string_literal: true

require_relative "ext_help"

# Every process is a stream of its own with the right parent, whatever made it, and nothing of it lands in the parent's ring.
# Programs run as the command line runs them: by RUBYOPT and the session's name in the environment.
class ProcessesTest < Minitest::Test
  include ExtHelp

  def session(code, status: 0)
    reader = RingReader.new
    program = write("program.rb", code)
    @ran = run_program(RbConfig.ruby, program, env: {
      "RRTRACE_SESSION" => reader.path, "RRTRACE_BUFFER" => "1M", "RUBYOPT" => "-W0 -I#{LIB} -rrrtrace/autorun"
    })
    assert_equal status, @ran.code, @ran.err
    reader.finish
  end

  def count(streams, name) = streams.map { _1.calls[name] }

  # pid => ppid, from both sources that name them
  def family(streams)
    streams.each { |s| assert_equal [s.pid, s.ppid], s.process.values_at(:pid, :ppid) }
    streams.to_h { |s| [s.pid, s.ppid] }
  end

  def test_programs_that_are_spawned_join_as_children
    streams = session(<<~'RUBY')
      ruby = RbConfig.ruby
      def mine = 1
      child = "def theirs = 1; theirs"
      mine
      system(ruby, "-e", child)
      `#{ruby} -e '#{child}'`
      Process.wait(spawn(ruby, "-e", child))
      IO.popen([ruby, "-e", child], &:read)
      system("#{ruby} -e '#{child}; exec(RbConfig.ruby, %q(-e), %q(def grand = 1; grand))'")
      mine
    RUBY
    assert_equal [2], count(streams, "Object#mine").reject(&:zero?)
    assert_equal [1] * 5, count(streams, "Object#theirs").reject(&:zero?)
    assert_equal [1], count(streams, "Object#grand").reject(&:zero?)
    parents = family(streams)
    assert_equal 6, parents.size, "exec keeps the process"
    main = streams.first.pid
    assert_equal 3, parents.values.count(main), "the others are a shell's"
  end

  def test_exec_over_itself_ends_one_stream_and_begins_another
    streams = session(<<~RUBY)
      def before = 1
      def after = 1
      if ARGV.empty?
        5.times { before }
        exec(RbConfig.ruby, __FILE__, "again")
      end
      after
    RUBY
    assert_equal [5, 0], count(streams, "Object#before")
    assert_equal [0, 1], count(streams, "Object#after")
    assert_equal 1, streams.map(&:pid).uniq.size
  end

  def test_a_fork_by_c_code_is_a_process_of_its_own
    streams = session(<<~RUBY)
      require "fiddle"
      c_fork = Fiddle::Function.new(Fiddle.dlopen(nil)["fork"], [], Fiddle::TYPE_INT)
      def parent_side = 1
      def child_side = 1
      def down(n, f) = n.zero? ? f.call : down(n - 1, f)
      pid = down(3, c_fork)
      if pid == 0
        2.times { child_side }
        exit!(0)
      end
      Process.wait(pid)
      3.times { parent_side }
    RUBY
    parent, child = streams
    assert_equal [[3, 0], [0, 2]], streams.map { |s| [s.calls["Object#parent_side"], s.calls["Object#child_side"]] }
    assert_equal parent.pid, child.ppid
    frames = child.spans.select(&:at_start).map(&:name)
    assert_equal ["Object#down"] * 4, frames.grep(/down/), "it begins with the stack that it was forked with"
  end

  def test_a_daemon_is_another_process
    streams = session(<<~RUBY)
      def before = 1
      def after = 1
      before
      $stdout.sync = true
      Process.daemon(true, true)
      2.times { after }
      puts Process.pid
    RUBY
    assert_equal [[1, 0], [0, 2]], streams.map { |s| [s.calls["Object#before"], s.calls["Object#after"]] }
    assert_equal @ran.out.to_i, streams.last.pid
  end

  # As puma's cluster mode: the master preloads, forks workers with threads, replaces one that dies and stops them by a signal.
  def test_a_cluster_has_a_stream_for_each_worker
    streams = session(<<~'RUBY')
      class App
        def call(n) = render(n)
        def render(n) = n
      end
      class Worker
        def initialize(index, app, requests)
          @index, @app, @requests = index, app, requests
        end
        def run
          trap(:TERM) { @stop = true }
          threads = 3.times.map { |i| Thread.new { Thread.current.name = "puma #{i}"; 10.times { |n| serve(n) } } }
          threads.each(&:join)
          @requests.write("x")
          Process.exit!(7) if @index == 0
          sleep 0.005 until @stop
        end
        def serve(n) = @app.call(n)
      end
      class Master
        def initialize = @pipe = IO.pipe
        def boot(index) = fork { Worker.new(index, App.new, @pipe[1]).run }
        def run
          pids = 3.times.map { |i| boot(i) }
          3.times { @pipe[0].read(1) }
          Process.wait(pids.shift)
          pids << boot(9)
          @pipe[0].read(1)
          pids.each { |pid| Process.kill(:TERM, pid) }
          pids.each { |pid| Process.wait(pid) }
        end
      end
      App.new.call(1)
      Master.new.run
    RUBY
    master, *workers = streams
    assert_equal [1] + [30] * 4, count(streams, "App#render")
    assert_equal [4, 0, 0, 0, 0], count(streams, "Master#boot")
    assert_equal [master.pid] * 4, workers.map(&:ppid)
    workers.each do |s|
      assert_equal ["puma 0", "puma 1", "puma 2"], s.thread_names.values.map(&:last).grep(/puma/).sort
      assert_includes s.spans.select(&:at_start).map(&:name), "Master#boot"
      assert(s.spans_named("App#render").all? { _1.ancestors == %w[Integer#times Worker#serve App#call] })
    end
  end
end
