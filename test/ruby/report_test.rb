# frozen_string_literal: true

require "test_helper"
require "support/real"
require "json"
require "io/console"
require "pty"

# Programs recorded with the real extension, and what `rrtrace report` and `rrtrace export` say of them.
class ReportTest < Minitest::Test
  include TestHelp
  include RealVisualizer

  def rrtrace(*arguments, **rest)
    ran = run_rrtrace(*arguments, **rest)
    assert_equal 0, ran.code, ran.err
    ran.out
  end

  def rows(path) = rrtrace("export", path, "-f", "jsonl").lines.map { |line| JSON.parse(line) }

  def method_named(report, name) = report.fetch("methods").find { |method| method["name"] == name }

  def arc(report, caller, callee)
    report.fetch("arcs").find { |arc| arc.values_at("caller", "callee") == [caller, callee] }
  end

  # A profiler that shares foo's time out by the number of calls would give bar a thousandth of it.
  def test_the_call_graph_shows_the_measured_times_of_each_caller
    path = record(<<~RUBY)
      def foo(n)
        i = 0
        i += 1 while i < n
      end
      def bar
        i = 0
        while i < 10
          foo(10_000)
          i += 1
        end
      end
      def baz
        i = 0
        while i < 10_000
          foo(10)
          i += 1
        end
      end
      bar
      baz
    RUBY
    report = report(path)
    durations = Hash.new { |hash, name| hash[name] = [] }
    outer = nil
    rows(path).each do |row|
      outer = row["name"] if row["depth"].zero?
      durations[outer] << row["duration_ns"] if row["name"] == "Object#foo"
    end
    %w[Object#bar Object#baz].each do |caller|
      arc = arc(report, caller, "Object#foo")
      assert_equal durations[caller].size, arc["calls"]
      assert_equal durations[caller].sum, arc["total_ns"]
    end
    assert_equal [10, 10_000], durations.values_at("Object#bar", "Object#baz").map(&:size)
    text = rrtrace("report", path, "--table=arcs", "--method=foo")
    assert_match(/ 10 +from Object#bar$/, text)
    assert_match(/ 10,000 +from Object#baz$/, text)
  end

  def test_jsonl_and_report_agree_on_every_method
    path = record(<<~RUBY)
      class Tree
        def walk(depth) = depth.zero? ? leaf : (1..2).each { walk(depth - 1) }
        def leaf = raise("x") if false
        def leaf = nil
        def risky = [1].each { raise ArgumentError }
      end
      Tree.new.walk(8)
      3.times { Tree.new.risky rescue nil }
      fiber = Fiber.new { Tree.new.walk(3); Fiber.yield; Tree.new.leaf }
      fiber.resume
      Thread.new { Tree.new.walk(4) }.join
    RUBY
    report = report(path)
    rows = rows(path)
    calls = rows.reject { |row| row["open_at_start"] }.map { |row| row.values_at("name", "kind") }.tally
    assert_equal calls, report["methods"].select { |m| m["calls"].positive? }.group_by { |m| m.values_at("name", "kind") }
      .transform_values { |methods| methods.sum { |m| m["calls"] } }
    assert_equal rows.count { |row| !row["open_at_start"] }, report["processes"].sum { |p| p["threads"].sum { |t| t["calls"] } }
    assert_equal rows.map { |row| row["depth"] }.max + 1, report["processes"].flat_map { |p| p["threads"] }.map { |t| t["max_depth"] }.max
    assert_includes rows.map { |row| row["closed_by"] }, "return"
    rows.group_by { |row| row.values_at("pid", "thread") }.each_value do |track|
      assert_equal track.map { |row| row["start_ns"] }, track.map { |row| row["start_ns"] }.sort
    end
    assert_equal 2, report["processes"].first["threads"].size
    tree = method_named(report, "Tree#leaf")
    assert_equal [File.realpath(temp_path("program.rb")), 4], [File.realpath(tree["path"]), tree["line"]]
  end

  def test_filters_choose_threads_processes_times_and_methods
    path = record(<<~RUBY)
      def work = sleep(0.02)
      def wait_here = nil
      threads = %w[alpha beta].map { |name| Thread.new { Thread.current.name = name; work; work } }
      threads.each(&:join)
      pid = fork { wait_here }
      Process.wait(pid)
    RUBY
    whole = report(path)
    assert_equal 4, method_named(whole, "Object#work")["calls"]
    assert_equal 2, whole["processes"].size
    child = whole["processes"].find { |process| process["ppid"] == whole["processes"].first["pid"] }
    one = report(path, "--thread", "alpha")
    assert_equal 2, method_named(one, "Object#work")["calls"]
    assert_equal ["alpha"], one["processes"].flat_map { |p| p["threads"] }.map { |t| t["name"] }
    assert_equal [child["pid"]], report(path, "--process", child["pid"].to_s)["processes"].map { |p| p["pid"] }
    assert_equal 1, method_named(report(path, "--process", child["pid"].to_s), "Object#wait_here")["calls"]
    assert_equal ["Object#work"], report(path, "--method", "/#work$/")["methods"].map { |m| m["name"] }
    half = report(path, "--from", "0", "--to", "#{whole["duration_ns"] / 2}ns")
    rest = report(path, "--from", "#{whole["duration_ns"] / 2}ns")
    total = method_named(whole, "Object#work")["total_ns"]
    assert_equal whole["events"], half["events"] + rest["events"]
    assert_operator rest["events"], :<, whole["events"]
    assert_equal total, [half, rest].sum { |part| method_named(part, "Object#work")&.fetch("total_ns") || 0 }
  end

  def test_the_programs_own_spans_and_marks_have_a_table
    path = record(<<~RUBY)
      3.times { |i| Rrtrace.span("checkout") { Rrtrace.span("pay \#{i}") { sleep 0.01 } } }
      2.times { Rrtrace.mark("cleared") }
      Rrtrace.mark("a\\xFF\\e[1m")
    RUBY
    text = run_rrtrace("report", path).out
    assert_match(/^The program's own spans and marks$/, text)
    assert_match(/^ +3 +\S+ ms +\S+ ms +\S+ ms  span  checkout$/, text)
    assert_match(/^ +1 +\S+ ms +\S+ ms +\S+ ms  span  pay 2$/, text)
    assert_match(/^ +2 +mark  cleared$/, text)
    assert_match(/^ +1 +mark  a\\xFF\\x1B\[1m$/, text)
    rows = run_rrtrace("report", path, "-f", "csv", "--table", "marks").out.lines(chomp: true)
    assert_equal "kind,name,count,total_ns,min_ns,max_ns", rows[0]
    assert_match(/\Aspan,checkout,3,3\d{7,},1\d{7,},\d{8,}\z/, rows[1])
    assert_equal "mark,cleared,2,0,0,0", rows[5]
    none = record("1.to_s")
    refute_match(/own spans and marks/, run_rrtrace("report", none).out)
    assert_match(/own spans and marks\n.*\n  none: Rrtrace\.span/, run_rrtrace("report", none, "--table", "marks").out)
  end

  def test_a_recording_with_counted_positions_says_so
    program = write("counted.rb", "def work = 1\nwork")
    path = temp_path("counted.rrt")
    [{"RRTRACE_TEST_COUNT_POSITIONS" => "1"}, {}].each do |env|
      assert_equal 0, run_rrtrace("--no-window", "-o", path, program, env: env).code
      said = run_rrtrace("report", path).out.lines.first(4).grep(/Stack positions were counted.*\(rrtrace doctor\)/)
      assert_equal env.size, said.size
    end
  end

  def test_a_thread_without_a_name_is_found_by_what_the_tables_call_it
    path = record(<<~RUBY)
      Warning[:experimental] = false
      def work(n) = n
      ractor = Ractor.new { 5.times { work(1) } }
      Thread.new { 7.times { work(1) } }.join
      3.times { work(1) }
      ractor.take
    RUBY
    table = run_rrtrace("report", path, "--table", "threads").out
    {"main" => 3, "ractor 2" => 5, "thread" => 7}.each do |title, calls|
      assert_match(/^ *\d+  #{title}/, table)
      found = report(path, "--thread", title)
      assert_equal calls, method_named(found, "Object#work")["calls"], title
    end
  end

  def test_names_of_any_bytes_give_valid_json_and_csv
    path = record(<<~'RUBY')
      class Wörter
        define_method("quo\"te,\n") { 1 }
        define_method("\xFF\xFEbin".b) { 2 }
        def größe = 3
      end
      w = Wörter.new
      w.send("quo\"te,\n")
      w.send("\xFF\xFEbin".b)
      w.größe
    RUBY
    names = report(path)["methods"].map { |m| m["name"] }
    ["Wörter#quo\"te,\n", "Wörter#\\xFF\\xFEbin", "Wörter#größe"].each { |name| assert_includes names, name }
    assert(rows(path).all? { |row| row["name"].valid_encoding? })
    csv = rrtrace("report", path, "--format=csv").dup.force_encoding("UTF-8")
    assert_predicate csv, :valid_encoding?
    assert_includes csv, "\"Wörter#quo\"\"te,\n\",ruby,"
    assert(csv.end_with?("\r\n"))
  end

  def test_the_newest_recording_of_the_folder_is_read_when_none_is_given
    record("def first = 1\nfirst", name: "rrtrace-1.rrt")
    record("def second = 1\nsecond", name: "rrtrace-0.rrt")
    File.utime(Time.now, Time.now - 60, temp_path("rrtrace-1.rrt"))
    ran = run_rrtrace("report", "--format=json")
    assert_equal [0, "rrtrace: reading rrtrace-0.rrt, the newest rrtrace-*.rrt here\n"], [ran.code, ran.err]
    assert method_named(JSON.parse(ran.out), "Object#second")
  end

  def test_output_goes_to_a_file_or_quietly_into_a_pipe_that_closes
    path = record("1000.times { |i| i.to_s }")
    assert_equal "", rrtrace("report", path, "-o", temp_path("out.txt"))
    assert_match(/Methods by self time/, File.read(temp_path("out.txt")))
    assert_equal rrtrace("report", path, "--format=json"), rrtrace("report", path, "-o-", "--format=json")
    ran = run_program("sh", "-c", "'#{RbConfig.ruby}' '#{EXE}' export '#{path}' -f jsonl | head -n 1")
    assert_equal [1, ""], [ran.out.lines.size, ran.err]
    ran = run_rrtrace("report", path, "-o", path)
    assert_equal [2, 1], [ran.code, ran.err.lines.size]
    assert_match(/is the recording itself/, ran.err)
    assert_operator File.size(path), :>, 0
  end

  def test_a_terminal_gets_its_width_and_colours_unless_it_wants_none
    path = record("module Outer; module Inner; class VeryLongNameOfAClass; def and_a_method_too = 1; end; end; end\n" \
      "Outer::Inner::VeryLongNameOfAClass.new.and_a_method_too")
    wide = terminal_output("report", path, columns: 150)
    narrow = terminal_output("report", path, columns: 80, env: {"NO_COLOR" => "1"})
    assert_includes wide, "\e[1m"
    assert_includes wide, "Outer::Inner::VeryLongNameOfAClass#and_a_method_too"
    refute_includes narrow, "\e["
    assert_match(/ and_a_method_too\b/, narrow)
    assert_operator narrow.lines.map { |line| line.chomp.size }.max, :<=, 80
  end

  def test_a_cut_file_is_read_as_far_as_it_goes
    path = record("def foo = 1\n200_000.times { foo }")
    File.binwrite(temp_path("cut.rrt"), File.binread(path, File.size(path) - 2000))
    ran = run_rrtrace("report", temp_path("cut.rrt"), "--format=json")
    assert_equal [0, 1], [ran.code, ran.err.lines.size], ran.err
    assert_match(/\Arrtrace: .*cut\.rrt: .*byte \d+/, ran.err)
    assert_operator method_named(JSON.parse(ran.out), "Object#foo")["calls"], :>, 1000
  end

  def test_a_spoiled_chunk_is_left_out_and_the_rest_is_there
    path = record("def foo = 1\ndef bar = 1\n60_000.times { foo }\nbar")
    whole = report(path)
    bytes = File.binread(path)
    bytes.setbyte(bytes.size / 2, bytes.getbyte(bytes.size / 2) ^ 0x55)
    File.binwrite(temp_path("spoiled.rrt"), bytes)
    ran = run_rrtrace("report", temp_path("spoiled.rrt"), "--format=json")
    assert_equal [0, 1], [ran.code, ran.err.lines.size], ran.err
    spoiled = JSON.parse(ran.out)
    assert_equal 1, method_named(spoiled, "Object#bar")["calls"]
    assert_includes 1...method_named(whole, "Object#foo")["calls"], method_named(spoiled, "Object#foo")["calls"]
    assert_empty spoiled["methods"].map { |m| m["name"] } - whole["methods"].map { |m| m["name"] }
    ran = run_rrtrace("export", temp_path("spoiled.rrt"), "-f", "jsonl")
    assert_equal [0, 1], [ran.code, ran.err.lines.size], ran.err
    assert_equal spoiled["methods"].sum { |m| m["calls"] }, ran.out.lines.map { |line| JSON.parse(line) }.count { |row| !row["open_at_start"] }
  end

  def test_misuse_is_one_line_and_code_2
    path = record("1")
    {
      ["report", path, "--tpo=3"] => /no such option: --tpo; did you mean --to/,
      ["report", path, "--format", "jsn"] => /did you mean json\?/,
      ["report", path, "--method", "/(/"] => /--method \/\(\/: no regular expression/,
      ["report", path, "--from", "soon"] => /--from soon: no time; give seconds/,
      ["report", path, "--top", "0"] => /--top 0: give a number from 1/,
      ["report", path, path] => /one recording at a time/,
      ["report", "--format"] => /--format wants a value/,
      ["report"] => /no recording given, and no rrtrace-\*\.rrt in this folder/,
      ["export", path] => /no format given, as in/,
      ["export", path, "-f", "perfeto"] => /did you mean perfetto\?/
    }.each do |argv, message|
      ran = run_rrtrace(*argv)
      assert_equal [2, "", 1], [ran.code, ran.out, ran.err.lines.size], "#{argv.inspect}: #{ran.err}"
      assert_match message, ran.err
    end
    assert_equal 1, run_rrtrace("export", path, "-f", "perfetto").code
    assert_equal 1, run_rrtrace("report", temp_path("nothing.rrt")).code
  end

  def test_the_help_of_both_fits_a_screen
    %w[report export].each do |command|
      help = rrtrace(command, "--help").dup.force_encoding("UTF-8")
      assert_operator help.lines.size, :<=, 32
      assert_operator help.lines.map { |line| line.chomp.size }.max, :<=, 80
    end
  end

  private

  def terminal_output(*arguments, columns:, env: {})
    output = +""
    PTY.open do |terminal, slave|
      slave.winsize = [40, columns]
      pid = Process.spawn(clean_environment.merge({"TERM" => "xterm", "NO_COLOR" => nil}, env), RbConfig.ruby, EXE, *arguments, out: slave, in: slave, chdir: temp_path)
      slave.close
      begin
        loop { output << terminal.readpartial(4096) }
      rescue EOFError, Errno::EIO
        nil
      end
      Process.wait(pid)
    end
    output.force_encoding("UTF-8").gsub("\r\n", "\n")
  end
end
