# frozen_string_literal: true

require "test_helper"
require "support/picture"
require "support/real"
require "json"

# Recordings made by the real extension and the real visualizer, and what becomes of them when something goes wrong.
class RecordTest < Minitest::Test
  include TestHelp
  prepend RealVisualizer

  def calls(report, name) = report.fetch("methods").find { |method| method["name"] == name }&.fetch("calls")

  def recordings = Dir[temp_path("rrtrace-*.rrt")]

  def test_without_a_window_the_file_is_named_by_time_and_process
    ran = run_rrtrace("--no-window", write("app.rb", "def work = Process.pid\nputs work\nexit 3"))
    assert_equal 3, ran.code, "the program's own"
    path = ran.err[/written to (\S+\.rrt)/, 1] or flunk(ran.err)
    assert_match(/\Arrtrace-\d{8}-\d{6}-#{ran.out.to_i}\.rrt\z/, File.basename(path))
    assert_equal temp_path, File.join(File.dirname(path), ""), "the current folder"
    report = report(path)
    assert_equal "", @report_said, "the file is whole when the command returns"
    assert_equal 1, calls(report, "Object#work")
    assert_equal 0, report.fetch("dropped")
  end

  # A buffer of a few thousand events is full again and again, and nothing of that may go unsaid.
  def test_how_often_the_program_has_waited_is_said_at_the_end_and_in_the_report
    path = temp_path("slow.rrt")
    ran = run_rrtrace("--no-window", "--buffer", "128K", "-o", path, write("app.rb", "def work = nil\n1_000_000.times { work }"))
    said = ran.err[/; the program waited (\d+) times for room in its buffer \(--buffer\); rrtrace report shows it/, 1].to_i
    assert_operator said, :>, 0, ran.err
    report = report(path)
    assert_equal said, report.fetch("waited")
    assert_equal 1_000_000, calls(report, "Object#work")
    assert_match(/; waited .* times for the recorder/, run_rrtrace("report", path).out)
    ran = run_rrtrace("--no-window", "-o", path, write("quick.rb", "1.to_s"))
    refute_match(/waited/, ran.err)
    assert_equal 0, report(path).fetch("waited")
    refute_match(/waited/, run_rrtrace("report", path).out)
  end

  # Pixels of what is to be noticed in a picture's upper right corner.
  def noticed(path)
    assert_equal 0, run_rrtrace("shot", path, "-o", temp_path("noticed.png")).code
    corner = Picture.of_file(temp_path("noticed.png")).rows(28, 52)
    (1_000...corner.width).sum { |x| (0...corner.height).count { |y| Picture.close?(corner[x, y], [255, 196, 77], 40) } }
  end

  def test_dropped_events_are_said_at_the_end_in_the_report_the_export_and_a_picture
    path = temp_path("lossy.rrt")
    ran = run_rrtrace("--no-window", "--on-full", "drop", "--buffer", "128K", "-o", path,
      write("app.rb", "def work = nil\n2_000_000.times { work }\nsleep 0.1\nThread.new { work }.join"))
    said = ran.err[/; (\d+) events were dropped for want of room in the buffer \(--buffer\); rrtrace report shows it/, 1].to_i
    assert_operator said, :>, 0, ran.err
    assert_equal said, report(path).fetch("dropped")
    assert_match(/events were dropped: figures are too low/, run_rrtrace("report", path).out)
    ran = run_rrtrace("export", path, "-f", "jsonl", "-o", temp_path("lossy.jsonl"))
    assert_equal "rrtrace: #{path}: #{said} events were dropped when it was recorded: calls are missing\n", ran.err
    assert_operator noticed(path), :>, 50
    ran = run_rrtrace("--no-window", "-o", path, write("quick.rb", "1.to_s"))
    refute_match(/dropped/, ran.err)
    assert_equal 0, noticed(path)
    assert_equal "", run_rrtrace("export", path, "-f", "jsonl", "-o", temp_path("whole.jsonl")).err
  end

  def test_stats_and_the_report_count_the_same_events
    path = temp_path("forks.rrt")
    program = write("forks.rb", "def leaf(n) = n\n3.times { fork { 100.times { leaf(_1) } } }\nProcess.waitall\n100.times { leaf(_1) }\n")
    ran = run_rrtrace("--no-window", "--stats", "-o", path, program)
    assert_equal 0, ran.code, ran.err
    assert_equal report(path).fetch("events"), ran.err[/(\d+) events of 4 streams/, 1].to_i
  end

  def test_programs_that_no_descriptor_is_left_for_are_counted_and_said
    path = temp_path("many.rrt")
    program = write("many.rb", "pipe = IO.pipe\n40.times { fork { pipe[1].close; pipe[0].read } }\npipe[1].close\nProcess.waitall\n")
    limited = lambda do |ulimit|
      run_program("sh", "-c", "ulimit #{ulimit}; exec \"$@\"", "sh", RbConfig.ruby, EXE, "--no-window", "-o", path, program)
    end
    ran = limited.call("-n 40")
    assert_equal 0, ran.code
    away = ran.err[/^rrtrace: (\d+) programs could not be traced: too many open files \(ulimit -n\)$/, 1].to_i
    assert_operator away, :>, 0, ran.err
    assert_equal 41 - away, report(path)["processes"].size
    ran = limited.call("-S -n 40") # which may be raised
    refute_match(/could not be traced/, ran.err)
    assert_equal 41, report(path)["processes"].size
  end

  def test_without_a_display_a_session_is_recorded
    ran = run_rrtrace(write("app.rb", "def work = 1\nwork"))
    assert_equal 0, ran.code
    assert_match(/no window: .*; recording into \S+ instead/, ran.err)
    assert_equal 1, recordings.size
    assert_equal 1, calls(report(recordings.first), "Object#work")
  end

  def test_a_display_set_to_nothing_is_none
    ran = run_rrtrace(write("app.rb", "def work = 1\nwork"), env: {"DISPLAY" => "", "WAYLAND_DISPLAY" => "", "XDG_RUNTIME_DIR" => nil})
    assert_equal 0, ran.code
    assert_equal ["rrtrace: no window: no display; recording into", "rrtrace: written to"], ran.err.lines.map { _1[/\A.*(recording into|written to)/] }
  end

  CHOSEN = <<~RUBY
    class Invoice
      def total = [1, 2].sum { |x| line(x) }
      def line(x) = x * Tax.rate
    end
    class Tax; def self.rate = 2; end
    3.times { Invoice.new.total }
  RUBY

  def test_a_recording_of_chosen_methods_has_those_alone
    {["--only", "Invoice"] => {"Invoice#total" => 3, "Invoice#line" => 6}, ["--only", "rate", "--only", "Invoice#total"] => {"Invoice#total" => 3, "Tax.rate" => 6},
     ["--only-path", "app", "--except", "Tax"] => {"Invoice#total" => 3, "Invoice#line" => 6}}.each do |options, wanted|
      path = temp_path("chosen.rrt")
      ran = run_rrtrace("--no-window", "-o", path, *options, write("app/invoice.rb", CHOSEN))
      assert_equal 0, ran.code, ran.err
      report = report(path)
      assert_equal wanted, report.fetch("methods").to_h { |method| method.values_at("name", "calls") }
      assert_equal 0, report.fetch("dropped")
      File.delete(path)
    end
  end

  def test_a_file_that_another_session_records_into_is_left_to_it
    path = temp_path("one.rrt")
    pid, output = start_rrtrace("--no-window", "-o", path, write("first.rb", "def first = 1\nputs 'ready'\n$stdout.flush\nsleep 0.01 until File.exist?(ARGV[0])\n5.times { first }\n"), temp_path("go"))
    wait_for_line(output, "ready")
    second = run_rrtrace("--no-window", "-o", path, write("second.rb", "puts 'never'"))
    assert_equal [1, ""], [second.code, second.out]
    assert_match(/one\.rrt: is being recorded into by another session; choose another name/, second.err)
    File.write(temp_path("go"), "")
    assert_equal 0, wait_for_exit(pid).exitstatus
    assert_equal 5, calls(report(path), "Object#first")
    assert_equal 0, run_rrtrace("--no-window", "-o", path, write("third.rb", "def third = 1\nthird")).code
    assert_equal 1, calls(report(path), "Object#third"), "when it is over, the name is free at once"
  end

  def test_choosing_what_is_never_called_is_said
    program = write("app.rb", CHOSEN)
    none = run_rrtrace("--no-window", "-o", temp_path("none.rrt"), "--only", "Invoice#totals", program)
    assert_equal 0, none.code
    assert_match(/there is no call in it: --only/, none.err)
    some = run_rrtrace("--no-window", "-o", temp_path("some.rrt"), "--only", "Invoice#total", program)
    refute_match(/there is no call/, some.err)
  end

  def test_a_recording_without_some_methods_has_the_others_and_their_stacks
    ran = run_rrtrace("--no-window", "-o", temp_path("rest.rrt"), "--except", "Invoice#line", "--except", "Array", write("app.rb", CHOSEN))
    assert_equal 0, ran.code, ran.err
    report = report(temp_path("rest.rrt"))
    assert_equal [3, 6, nil, nil], ["Invoice#total", "Tax.rate", "Invoice#line", "Array#sum"].map { calls(report, _1) }
    arc = report.fetch("arcs").find { _1["callee"] == "Tax.rate" }
    assert_equal ["Invoice#total", 6], arc.values_at("caller", "calls")
  end

  def test_code_can_choose_methods_in_the_middle_of_a_program
    path = temp_path("middle.rrt")
    ran = run_ruby("#{CHOSEN}\nrequire 'rrtrace'\nRrtrace.trace(only: 'Invoice#line', window: false, output: #{path.inspect}) { Invoice.new.total }\nInvoice.new.total")
    assert_equal 0, ran.code, ran.err
    assert_equal [["Invoice#line", 2]], report(path).fetch("methods").map { _1.values_at("name", "calls") }
  end

  def test_code_records_a_block_and_the_file_is_whole_after_it
    path = temp_path("block.rrt")
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      def work = 1
      begin
        Rrtrace.trace(output: #{path.inspect}, window: false) { work; {}.fetch(:missing) }
      rescue KeyError
        puts Rrtrace.started?
        system(#{RbConfig.ruby.inspect}, #{EXE.inspect}, "report", #{path.inspect}, "--format=json")
      end
    RUBY
    assert_equal 0, ran.code, ran.err
    assert_equal "false", ran.out.lines.first.chomp
    assert_equal 1, calls(JSON.parse(ran.out.lines.drop(1).join), "Object#work")
  end

  def test_a_second_trace_of_the_same_program_goes_on_in_its_file_and_another_program_writes_it_anew
    path = temp_path("twice.rrt")
    code = "require 'rrtrace'\ndef work = 1\n2.times { Rrtrace.trace(output: #{path.inspect}, window: false) { work } }"
    2.times do
      assert_equal 0, run_ruby(code).code
      assert_equal 2, calls(report(path), "Object#work")
    end
  end

  def test_all_processes_of_a_session_are_in_one_file_with_their_parents
    path = temp_path("tree.rrt")
    child = write("child.rb", "def grown = 1\ngrown")
    code = <<~RUBY
      def forked = 1
      2.times { Process.wait(fork { forked }) }
      system(#{RbConfig.ruby.inspect}, #{child.inspect})
      puts Process.pid
    RUBY
    ran = run_rrtrace("--no-window", "-o", path, write("tree.rb", code))
    assert_equal 0, ran.code, ran.err
    report = report(path)
    assert_equal 2, calls(report, "Object#forked")
    assert_equal 1, calls(report, "Object#grown")
    processes = report.fetch("processes")
    assert_equal 4, processes.size
    parent = ran.out.to_i
    assert_equal [parent] * 3, processes.reject { |process| process["pid"] == parent }.map { |process| process["ppid"] }
  end

  def test_kill_9_of_the_visualizer_leaves_what_was_recorded
    path = temp_path("killed.rrt")
    code = "def first = 1\n50_000.times { first }\n$stdout.puts 'go'\n$stdout.flush\nsleep 0.1 until File.exist?(#{temp_path("on").inspect})\nputs 'end'"
    pid, output = start_rrtrace("--no-window", "-o", path, write("app.rb", code))
    wait_until("the program to be under way") { File.read(output).include?("go") }
    wait_until("a second's events to be in the file") { File.size?(path).to_i > 20_000 }
    sleep 1.5 # what a quiet program did is in the file after about a second
    visualizer_pids.each { |visualizer| Process.kill(:KILL, visualizer) }
    wait_until("the program to tidy up") { Dir[temp_path("rrtrace-*/")].empty? }
    write("on", "")
    assert_equal 0, wait_for_exit(pid).exitstatus
    assert_equal ["go", "rrtrace: the visualizer was killed: this program runs on untraced", "end"], File.readlines(output, chomp: true)
    report = report(path)
    assert_equal 50_000, calls(report, "Object#first")
    assert_match(/killed\.rrt: it has no end/, @report_said, "that it is not whole is said")
  end

  def test_kill_9_of_the_program_loses_nothing
    path = temp_path("self.rrt")
    ran = run_rrtrace("--no-window", "-o", path, write("app.rb", "def last = 1\n1000.times { last }\nProcess.kill(:KILL, $$)\nsleep"))
    assert_equal 9, ran.status.termsig
    wait_until("the visualizer to end") { visualizer_pids.empty? }
    assert_equal 1000, calls(report(path), "Object#last")
    assert_equal "", @report_said
  end

  def test_a_full_disk_ends_the_recording_and_not_the_program
    path = temp_path("full.rrt")
    program = write("app.rb", "def work(i) = i.to_s\n600_000.times { |i| work(i) }\nputs 'done'")
    ran = run_program("sh", "-c", "ulimit -f 1000; exec \"$@\"", "sh", RbConfig.ruby, EXE, "--no-window", "--buffer", "128K", "-o", path, program)
    assert_equal 0, ran.code, ran.err
    assert_equal "done\n", ran.out
    assert_equal 1, ran.err.scan("full.rrt: the file may not grow any more").size, ran.err
    assert_operator calls(report(path), "Object#work"), :>, 1000, "what came before is kept"
  end

  def test_a_limit_on_files_smaller_than_the_buffer_leaves_the_program_untraced_and_alive
    program = write("app.rb", "puts Rrtrace.started?")
    ran = run_program("sh", "-c", "ulimit -f 100; exec \"$@\"", "sh", RbConfig.ruby, EXE, "--no-window", program)
    assert_equal ["false\n", 0], [ran.out, ran.code], ran.err
    assert_match(/no shared memory for a buffer of \d+ KiB: File too large/, ran.err)
  end

  def test_a_name_that_cannot_be_written_is_refused_before_the_command_runs
    taken = write("notes.txt", "mine\n")
    ran = run_rrtrace("--no-window", "-o", taken, write("app.rb", "puts 'ran'"))
    assert_equal 1, ran.code
    assert_equal "", ran.out
    assert_match(/notes\.txt: exists and is no recording/, ran.err)
    assert_equal "mine\n", File.read(taken)
  end

  def test_a_picture_is_drawn_from_a_recording
    path = temp_path("film.rrt")
    assert_equal 0, run_rrtrace("--no-window", "-o", path, write("film.rb", "def alpha = sleep(0.2)\ndef beta = sleep(0.3)\nalpha\nbeta")).code
    ran = run_rrtrace("shot", path, "-o", temp_path("film.png"), "--size", "640x360")
    assert_equal 0, ran.code, ran.err
    picture = Picture.of_file(temp_path("film.png"))
    assert_equal [640, 360], [picture.width, picture.height]
    assert_operator picture.colored, :>, 2_000, "boxes, and not just text"
    ran = run_rrtrace("shot", path, "--camera", "flame", "--from", "50ms", "--to", "150ms")
    assert_equal 0, ran.code, ran.err
    assert_path_exists temp_path("film.png")
  end

  def test_a_picture_leaves_all_other_files_alone
    path = temp_path("small.rrt")
    assert_equal 0, run_rrtrace("--no-window", "-o", path, write("small.rb", "1.to_s")).code
    mine = write("x.png.part", "mine")
    before = Dir.children(temp_path)
    assert_equal 0, run_rrtrace("--shot", temp_path("x.png"), write("small.rb", "1.to_s")).code
    assert_equal 0, run_rrtrace("shot", path, "-o", temp_path("x.png")).code
    assert_equal "mine", File.read(mine)
    assert_equal ["x.png"], Dir.children(temp_path) - before
    long = "\u00e9" * 120 + ".png" # as long as a name may be
    assert_equal 0, run_rrtrace("shot", path, "-o", temp_path(long)).code
    assert_path_exists temp_path(long)
  end

  # The commands of the visualizer's side read sizes as the others do.
  def test_how_much_memory_a_picture_may_take_is_said_as_for_a_session
    path = temp_path("small.rrt")
    assert_equal 0, run_rrtrace("--no-window", "-o", path, write("small.rb", "1.to_s")).code
    %w[64m 1.5G 64MB 1048576].each do |size|
      assert_equal 0, run_rrtrace("shot", path, "--memory", size).code, size
      assert_equal 0, run_rrtrace("shot", path, env: {"RRTRACE_MEMORY" => size}).code, size
    end
    %w[shot view].each do |command|
      ran = run_rrtrace(command, path, "--memory", "1000")
      assert_equal [2, 1], [ran.code, ran.err.lines.size]
      assert_match(/\Arrtrace: #{command}: --memory: 1000 is no size; give bytes, or a number with K, M or G/, ran.err)
      ran = run_rrtrace(command, path, env: {"RRTRACE_MEMORY" => "much"})
      assert_equal 2, ran.code
      assert_match(/\Arrtrace: #{command}: RRTRACE_MEMORY: much is no size/, ran.err)
    end
  end
end
