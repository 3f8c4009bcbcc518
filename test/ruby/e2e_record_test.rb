# frozen_string_literal: true

require "json"
require_relative "test_helper"
require_relative "support/window"

# R in the window: recordings begun and ended while a program runs, on a real X server.
class E2ERecordTest < Minitest::Test
  include TestHelp
  include RealWindow

  # Does what the test asks for by making a file, and says so by making another. What waits was called before.
  PROGRAM = <<~RUBY
    def wait_for(name) = (sleep(0.01) until File.exist?(name))
    def leaf(n) = n
    def counted(n) = leaf(n)
    def other = nil
    def batch
      1_000.times { |i| counted(i) }
      500.times { other }
    end

    def steps
      1.upto(Float::INFINITY) do |step|
        wait_for("go-\#{step}")
        return if File.exist?("end")
        batch
        File.write("done-\#{step}", "")
      end
    end
    steps
  RUBY

  def setup
    super
    @step = 0
  end

  # The program does a batch of calls.
  def go
    @step += 1
    File.write(temp_path("go-#{@step}"), "")
    wait_until("step #{@step}") { File.exist?(temp_path("done-#{@step}")) }
  end

  def end_program(pid)
    File.write(temp_path("end"), "")
    File.write(temp_path("go-#{@step + 1}"), "")
    assert_equal 0, wait_for_exit(pid).exitstatus
  end

  def recordings = Dir[temp_path("rrtrace-*.rrt")]

  # Presses R until a recording has begun; its path.
  def begin_recording
    before = recordings
    @screen.key("r")
    wait_until("a new file") { (recordings - before).any? }
    (recordings - before).first
  end

  def end_recording(output, path)
    @screen.key("r")
    wait_for_line(output, "written to #{path}")
  end

  def report(path) = super.tap { assert_equal "", @report_said }

  def calls_in(report) = report.fetch("methods").to_h { |method| [method["name"], method["calls"]] }.slice("Object#counted", "Object#leaf", "Object#other", "Object#batch")

  def batches(count) = {"Object#counted" => 1000 * count, "Object#leaf" => 1000 * count, "Object#other" => 500 * count, "Object#batch" => count}

  # What one batch did, call by call.
  def story(path)
    ran = run_rrtrace("export", path, "-f", "jsonl")
    assert_equal 0, ran.code, ran.err
    calls = ran.out.lines.map { |line| JSON.parse(line) }
    first = calls.index { |call| call["name"] == "Object#batch" }
    depth = calls[first]["depth"]
    calls.drop(first).chunk_while { |_, call| call["depth"] > depth }.first.map { |call| call.values_at("name", "depth", "kind", "closed_by") }
  end

  # Of the red light before the file's name, at the upper right.
  def light_pixels
    picture = @screen.picture
    (32..60).sum { |y| (picture.width / 2...picture.width).count { |x| Picture.close?(picture[x, y], [255, 92, 60], 30) } }
  end

  def test_r_records_what_runs_until_it_is_pressed_again
    pid, output = open_window(write("program.rb", PROGRAM))
    go
    first = begin_recording
    assert_match(/\A#{Regexp.escape(temp_path)}rrtrace-\d{8}-\d{6}-#{pid}\.rrt\z/, first)
    wait_until("the sign of it") { light_pixels > 50 }
    2.times { go }
    end_recording(output, first)
    wait_until("the sign to go") { light_pixels == 0 }
    go
    second = begin_recording
    go
    end_program(pid)
    @screen.key("r")
    wait_for_line(output, "written to #{second}")
    @screen.key("r") # every program has ended
    sleep 0.5
    assert_equal 2, recordings.size
    quit
    assert_equal 1, File.read(output).scan("written to #{first}").size
    assert_equal 1, File.read(output).scan("written to #{second}").size

    report = report(first)
    assert_equal batches(2), calls_in(report)
    assert_equal 0, report.fetch("dropped")
    assert_includes report.fetch("processes").first.fetch("command"), "program.rb"
    counted = report.fetch("methods").find { |method| method["name"] == "Object#counted" }
    assert_equal [temp_path("program.rb"), 3], counted.values_at("path", "line")
    arc = report.fetch("arcs").find { |each| each["callee"] == "Object#leaf" }
    assert_equal ["Object#counted", 2000], arc.values_at("caller", "calls")
    assert_equal [0, true], report.fetch("methods").find { |method| method["name"] == "Object#steps" }.then { |steps| [steps["calls"], steps["total_ns"] > 0] }
    assert_equal batches(1), calls_in(report(second))
  end

  def test_a_file_that_r_has_begun_tells_the_same_of_a_call_as_one_from_the_start
    pid, output = open_window(write("program.rb", PROGRAM))
    late = begin_recording
    go
    end_program(pid)
    end_recording(output, late)
    quit
    FileUtils.rm_f([temp_path("end"), *Dir[temp_path("{go,done}-*")]])
    whole = temp_path("whole.rrt")
    @step = 0
    pid, = start_rrtrace("--no-window", "-o", whole, temp_path("program.rb"))
    go
    end_program(pid)
    assert_equal calls_in(report(whole)), calls_in(report(late))
    assert_equal story(whole), story(late)
    assert_operator story(late).size, :>, 2500
  end

  def test_r_ends_what_the_command_line_has_begun_and_then_begins_another
    path = temp_path("app.rrt")
    pid, output = open_window("-o", path, write("program.rb", PROGRAM), env: {"RRTRACE_VALIDATION" => nil})
    go
    end_recording(output, path)
    assert_equal batches(1), calls_in(report(path))
    second = begin_recording
    go
    quit # closing the window ends it, too
    wait_for_line(output, "written to #{second}")
    end_program(pid)
    assert_equal batches(1), calls_in(report(second))
  end

  def test_the_same_command_runs_again_while_the_last_window_is_still_open
    path = temp_path("app.rrt")
    ended = write("ended.rb", "def counted(n) = n\n300.times { counted(_1) }\n")
    pid, output = open_window("-o", path, ended)
    assert_equal 0, wait_for_exit(pid).exitstatus
    write("ended.rb", "def counted(n) = n\n500.times { counted(_1) }\n")
    again = run_rrtrace("--no-window", "-o", path, ended) # at once
    assert_equal 0, again.code, again.err
    assert_includes again.err, "written to #{path}"
    assert_equal 500, calls_in(report(path)).fetch("Object#counted")
    wait_for_line(output, "written to #{path}")
    wait_until("the light to go out") { light_pixels == 0 }
    @screen.key("r")
    sleep 0.5
    assert_empty recordings, "there is nothing to record"
    quit
    assert_equal 1, File.read(output).scan("written to").size
    assert_equal 500, calls_in(report(path)).fetch("Object#counted"), "the window's end has left the new file alone"
  end

  def test_a_window_lets_go_of_a_pipe_and_says_nothing
    reader, writer = IO.pipe
    pid = Process.spawn(clean_environment.merge("RRTRACE_VALIDATION" => nil), RbConfig.ruby, EXE, write("program.rb", PROGRAM),
      out: writer, err: writer, in: File::NULL, chdir: temp_path)
    programs << pid
    writer.close
    @screen.find_window
    path = begin_recording
    go
    end_program(pid)
    assert_equal "", reader.read, "the end of the program is the end of its output"
    @screen.key("r", "ctrl+q")
    wait_until("the window to close") { !@screen.window? }
    wait_until("the visualizer to end") { visualizer_pids.empty? }
    assert_equal batches(1), calls_in(report(path))
  end

  def test_from_a_folder_that_is_gone_the_temporary_one_is_recorded_into
    folder = temp_path("gone")
    Dir.mkdir(folder)
    code = PROGRAM.gsub('"go-', "\"#{temp_path}go-").gsub('"done-', "\"#{temp_path}done-").gsub('"end"', temp_path("end").inspect)
    pid, output = open_window(write("program.rb", code), chdir: folder)
    go
    Dir.rmdir(folder)
    path = begin_recording
    wait_until("the sign of it") { light_pixels > 50 }
    end_recording(output, path)
    end_program(pid)
    quit
  end

  def test_a_full_disk_is_said_and_the_program_goes_on
    pid, output = open_window(write("program.rb", PROGRAM))
    # 8 KiB a file, for the visualizer alone.
    system("prlimit", "--pid", visualizer_pids.first.to_s, "--fsize=8192", exception: true)
    path = begin_recording
    3.times { go }
    wait_for_line(output, "rrtrace: #{path}: the file may not grow any more (ulimit -f); recording has ended, what came before is kept")
    wait_until("the sign to go") { light_pixels == 0 }
    go
    end_program(pid)
    quit
    assert_equal 0, run_rrtrace("report", path).code
  end

  def test_in_a_recording_r_does_nothing_but_say_why
    assert_equal 0, run_rrtrace("--no-window", "-o", temp_path("made.rrt"), write("short.rb", "1.to_s")).code
    open_window("view", temp_path("made.rrt"))
    sleep 1
    before = @screen.picture.rows(560, 640)
    @screen.key("r")
    wait_until("a line that says why") { @screen.picture.rows(560, 640) != before }
    assert_empty recordings
    quit
  end
end
