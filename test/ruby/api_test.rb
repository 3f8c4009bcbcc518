# frozen_string_literal: true

require "test_helper"
require "rrtrace"
require "rrtrace/settings"
require "socket"

class ApiTest < Minitest::Test
  include TestHelp

  def test_starting_and_stopping_twice_answers_false
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      print [Rrtrace.started?, Rrtrace.stop, Rrtrace.start, Rrtrace.started?, Rrtrace.start, Rrtrace.stop, Rrtrace.started?,
             Rrtrace.stop, Rrtrace.start(window: false), Rrtrace.stop].join(" ")
    RUBY
    assert_equal "false false true true false true false false true true", ran.out, ran.err
    assert_equal "", ran.err
    assert_equal 2, hellos(whole_log(sessions: 2)).size
  end

  def test_wrong_options_are_an_error_while_tracing_is_on_as_well
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      Rrtrace.start(window: false)
      [{nonsense: 1}, {buffer: "x"}, {only: "Foo#"}].each { |options| puts((Rrtrace.start(**options) rescue $!.class)) }
      puts Rrtrace.start(buffer: "64M"), Rrtrace.stop
    RUBY
    assert_equal %w[Rrtrace::Error Rrtrace::Error Rrtrace::Error false true], ran.out.lines(chomp: true), ran.err
  end

  def test_the_extension_looks_at_files_as_ruby_does
    program = write("runs", "#!/bin/sh")
    File.chmod(0o755, program)
    [program, write("plain", ""), temp_path, "/dev/null", temp_path("missing"), "/"].each do |path|
      kind = %i[file folder].zip([File.file?(path), File.directory?(path)]).find(&:last)&.first || :other
      wanted = [kind, File.writable?(path), File.executable?(path)] if File.exist?(path)
      assert_equal [wanted], [Rrtrace.native.look(path)], path
    end
  end

  def test_requiring_it_loads_two_small_files_and_starts_nothing
    ran = run_ruby(<<~RUBY)
      before = $LOADED_FEATURES.dup
      require "rrtrace"
      puts ($LOADED_FEATURES - before).map { |path| path.delete_prefix(#{LIB.inspect}) }, Thread.list.size, Rrtrace.started?
    RUBY
    assert_equal "/rrtrace/version.rb\n/rrtrace.rb\n1\nfalse\n", ran.out, ran.err
    assert_empty log
  end

  def test_starting_requires_nothing_of_the_standard_library
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      before = $LOADED_FEATURES.dup
      Rrtrace.start
      puts ($LOADED_FEATURES - before).reject { |path| path.start_with?(#{LIB.inspect}) }
    RUBY
    assert_equal "", ran.out, "a default gem loaded here could be another version than the program's bundle has"
    assert_predicate ran.status, :success?
  end

  def test_the_environment_starts_it_with_its_settings
    path = temp_path("run.png")
    ran = run_ruby('require "rrtrace"; print Rrtrace.started?', env: {
      "RRTRACE" => "1", "RRTRACE_WINDOW" => "0", "RRTRACE_SHOT" => path, "RRTRACE_MEMORY" => "64M"
    })
    assert_equal "true", ran.out, ran.err
    assert_includes whole_log, "arguments --no-window --shot=#{path} --memory=#{64 << 20}"
  end

  def test_the_environments_zero_starts_nothing
    ran = run_ruby('require "rrtrace"; print Rrtrace.started?', env: {"RRTRACE" => "0"})
    assert_equal "false", ran.out, ran.err
  end

  def test_a_wrong_setting_in_the_environment_is_one_line_and_the_program_runs
    ran = run_ruby('require "rrtrace"; print Rrtrace.started?', env: {"RRTRACE" => "1", "RRTRACE_BUFFER" => "12Q"})
    assert_equal "false", ran.out
    assert_equal 1, ran.err.lines.size, ran.err
    assert_match(/\Arrtrace: RRTRACE_BUFFER: "12Q" is no size.*; running untraced\n\z/, ran.err)
    assert_equal 0, ran.code
  end

  def test_a_missing_visualizer_is_an_error_in_code_and_one_line_from_the_environment
    missing = {"RRTRACE_VISUALIZER" => "/nowhere/rrtrace-visualizer"}
    ran = run_ruby('require "rrtrace"; begin; Rrtrace.start; rescue Rrtrace::Error; print $!.message; end', env: missing)
    assert_match(%r{\ARRTRACE_VISUALIZER=/nowhere/rrtrace-visualizer is no program}, ran.out, ran.err)
    ran = run_ruby('require "rrtrace"; print 1', env: missing.merge("RRTRACE" => "1"))
    assert_equal "1", ran.out
    assert_equal 1, ran.err.lines.size, ran.err
  end

  def test_a_visualizer_that_fails_is_an_error_and_leaves_nothing_behind
    failing = write("failing", "#!/bin/sh\nexit 3\n", mode: 0o755)
    ran = run_ruby(<<~RUBY, env: {"RRTRACE_VISUALIZER" => failing, "TMPDIR" => temp_path, "XDG_RUNTIME_DIR" => nil})
      require "rrtrace"
      begin
        Rrtrace.start
      rescue Rrtrace::Error => error
        puts error.message, Rrtrace.started?, ENV["RRTRACE_SESSION"].inspect
      end
    RUBY
    assert_match(/could not start.*\nfalse\nnil\n\z/, ran.out, ran.err)
    assert_empty Dir[temp_path("rrtrace-*")]
  end

  def test_a_program_joins_the_session_that_its_parent_opened
    ran = run_ruby(<<~RUBY, env: {"RRTRACE" => "1"})
      require "rrtrace"
      if ARGV.empty?
        system(RbConfig.ruby, "-I", $LOAD_PATH.first, __FILE__, "child")
        print ENV["RRTRACE_SESSION"] ? "set" : "not set"
      else
        print Rrtrace.started?, " "
      end
    RUBY
    assert_equal "true set", ran.out, ran.err
    lines = whole_log
    assert_equal 1, lines.grep(/\Aarguments/).size
    assert_equal 2, hellos(lines).uniq.size
  end

  def test_a_forked_child_has_its_own_place_in_the_session_and_ends_well
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      Rrtrace.start(window: false)
      pid = fork { [3].each { |number| number.to_s }; exit 7 }
      Process.wait(pid)
      print $?.exitstatus, " ", pid
    RUBY
    code, child = ran.out.split
    assert_equal "7", code, ran.err
    assert_equal ["hello #{child}", "bye #{child}", "done #{child}"], log.grep(/\A(hello|bye|done) #{child}\z/)
  end

  def test_a_session_that_is_over_is_replaced_in_code_and_left_alone_from_the_environment
    gone = temp_path("gone/session")
    ran = run_ruby(<<~RUBY, env: {"RRTRACE_SESSION" => gone})
      require "rrtrace"
      print Rrtrace.start, " ", ENV["RRTRACE_SESSION"] != #{gone.inspect}, " ", Rrtrace.stop, " ", ENV["RRTRACE_SESSION"]
    RUBY
    assert_equal "true true true #{gone}", ran.out, ran.err
    ran = run_ruby('require "rrtrace"; print Rrtrace.started?', env: {"RRTRACE_SESSION" => gone, "RRTRACE" => "1"})
    assert_equal ["false", ""], [ran.out, ran.err], "children must not bring back a window that was closed"
    assert_equal 1, whole_log.grep(/\Aarguments/).size
  end

  def test_a_socket_that_refuses_is_replaced_too
    dead = temp_path("dead")
    listener = Socket.new(:UNIX, :SEQPACKET)
    listener.bind(Socket.pack_sockaddr_un(dead))
    listener.close
    ran = run_ruby('require "rrtrace"; print Rrtrace.start, Rrtrace.stop', env: {"RRTRACE_SESSION" => dead})
    assert_equal "truetrue", ran.out, ran.err
  end

  def test_a_block_is_traced_and_its_value_returned
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      value = Rrtrace.trace(window: false) { Rrtrace.started? && Rrtrace.trace { 42 } }
      print value, " ", Rrtrace.started?
    RUBY
    assert_equal "42 false", ran.out, ran.err
    assert_equal 1, hellos(whole_log).size, "the inner trace belongs to the outer one"
  end

  def test_a_block_that_raises_still_ends_the_session
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      begin
        Rrtrace.trace(window: false) { {}.fetch(:missing) }
      rescue KeyError
        print Rrtrace.started?
      end
    RUBY
    assert_equal "false", ran.out, ran.err
    assert_equal 1, log.grep(/\Adone/).size, "stop waits until the picture is complete"
  end

  def test_spans_and_marks_run_with_and_without_tracing
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      print Rrtrace.span("a") { 1 }, Rrtrace.mark("b").inspect
      Rrtrace.trace(window: false) { print Rrtrace.span(:c) { Rrtrace.mark(:d); 2 } }
      begin
        Rrtrace.trace(window: false) { Rrtrace.span("e") { raise "f" } }
      rescue => error
        print error.message
      end
      print Rrtrace.span("stops inside") { Rrtrace.start; Rrtrace.stop; 3 }
    RUBY
    assert_equal "1nil2f3", ran.out, ran.err
  end

  def test_wrong_use_says_what_to_do
    {
      -> { Rrtrace.trace } => /needs a block/,
      -> { Rrtrace.span("name") } => /needs a block/,
      -> { Rrtrace.start(windw: false) } => /unknown option windw: known are output, window/,
      -> { Rrtrace.start(window: 3) } => /window: 3 is neither true nor false/,
      -> { Rrtrace.start(output: "") } => /output: "" is no file name/,
      -> { Rrtrace.start(output: 3) } => /output: 3 is no file name/,
      -> { Rrtrace.start(buffer: "12Q") } => /buffer: "12Q" is no size/,
      -> { Rrtrace.start(buffer: 0) } => /buffer: 0 is no size/,
      -> { Rrtrace.start(buffer: 100) } => /buffer: 100 is out of range/,
      -> { Rrtrace.start(memory: 100) } => /memory: 100 is out of range/,
      -> { Rrtrace.start(on_full: :explode) } => /on_full: :explode is not known; give wait or drop/
    }.each do |use, message|
      assert_match message, assert_raises(Rrtrace::Error, &use).message
      refute_predicate Rrtrace, :started?
    end
  end

  def test_a_file_that_cannot_be_written_is_named_before_a_session_opens
    {
      temp_path("nowhere/run.png") => /the folder .*nowhere does not exist/,
      temp_path => /is a folder: give a file name/
    }.each do |path, message|
      %i[shot output].each do |key|
        settings = Rrtrace::Settings.new({key => path}, {})
        assert_match message, assert_raises(Rrtrace::Error) { settings.visualizer_arguments }.message
      end
    end
  end

  def test_a_recording_is_made_where_output_says
    settings = Rrtrace::Settings.new({output: temp_path("run.rrt")}, {})
    assert_equal ["--output=#{temp_path("run.rrt")}"], settings.visualizer_arguments
    refute_includes settings.program_environment.compact.keys, "RRTRACE_OUTPUT", "it is this session's alone"
  end

  def test_sizes_are_read_as_people_write_them
    {"64M" => 64 << 20, "1GiB" => 1 << 30, "1.5 g" => 3 << 29, "262144" => 262_144, 300_000 => 300_000, "512kb" => 512 << 10}.each do |given, bytes|
      assert_equal bytes, Rrtrace::Settings.parse(:buffer, given, "buffer"), given.inspect
    end
  end

  # A program is not to end because of a byte in its environment.
  def test_bytes_that_are_no_text_are_refused_in_one_line_and_the_program_goes_on
    %w[BUFFER MEMORY WINDOW BLOCKS ON_FULL ONLY EXCEPT ONLY_PATH].each do |key|
      ran = run_ruby("require 'rrtrace'; puts :on", env: {"RRTRACE" => "1", "RRTRACE_#{key}" => "\xFF,a"})
      assert_equal ["on\n", 0], [ran.out, ran.code], ran.err
      assert_match(/\Arrtrace: RRTRACE_#{key}: .*; running untraced\n\z/, ran.err.b)
      assert_includes ran.err, (key == "ONLY_PATH") ? "folder" : '"\xFF'
    end
    error = assert_raises(Rrtrace::Error) { Rrtrace::Settings.new({only: "\xFF"}, {}) }
    assert_match(/\Aonly: "\\xFF" is no pattern: some of it is no text/, error.message)
  end

  def test_a_files_name_may_have_any_bytes
    Dir.mkdir(folder = temp_path("lib\xFF"))
    settings = Rrtrace::Settings.new({output: temp_path("a\xFF.rrt")}, {"RRTRACE_ONLY_PATH" => "#{folder}:/"})
    assert_equal ["--output=#{temp_path("a\xFF.rrt")}"], settings.visualizer_arguments
    assert_equal [File.realpath(folder), "/"], settings.selection.last
    assert_equal settings.selection, Rrtrace::Settings.new({}, settings.program_environment.compact).selection
  end

  def test_a_buffer_is_rounded_up_to_a_power_of_two_of_slots
    {16 << 20 => 1 << 20, (16 << 20) + 1 => 1 << 21, 128 << 10 => 1 << 13, 4 << 30 => 1 << 28}.each do |bytes, slots|
      assert_equal [slots, false, true, false], Rrtrace::Settings.new({buffer: bytes}, {}).join_arguments
    end
  end

  def test_choices_of_methods_are_read_from_code_and_environment
    folder = File.realpath(temp_path)
    settings = Rrtrace::Settings.new({only: ["Foo#bar", :save], except: "Foo.*", only_path: folder}, {})
    assert_equal [["Foo#bar", "save"], ["Foo.*"], [folder]], settings.selection
    environment = {"RRTRACE_ONLY" => "Foo#bar, Baz", "RRTRACE_EXCEPT" => "/a,b/", "RRTRACE_ONLY_PATH" => "#{folder}:/"}
    assert_equal [["Foo#bar", "Baz"], ["/a,b/"], [folder, "/"]], Rrtrace::Settings.new({}, environment).selection
    assert_equal [[], [], []], Rrtrace::Settings.new({}, {}).selection
    passed_on = Rrtrace::Settings.new({only: ["Foo#bar", "/a,b/"], only_path: [folder]}, {}).program_environment
    assert_equal [["Foo#bar", "/a,b/"], [], [folder]], Rrtrace::Settings.new({}, passed_on.compact).selection
  end

  def test_wrong_choices_of_methods_are_errors_of_one_line
    {
      {only: ""} => /\Aonly: "" is no pattern: it names no method/, {only: "Foo."} => /"Foo\." is no pattern/,
      {only: "/[/"} => %r{"/\[/" is no pattern: }, {except: 3} => /\Aexcept: 3 is no pattern: give it as a string/,
      {only: "a b"} => /is no pattern/, {only: "Kernel#puts"} => /\Aonly: Kernel#puts is not written in Ruby/,
      {only: "Kernel#class"} => /\Aonly: Kernel#class is not written in Ruby/,
      {only: "File.join"} => /not written in Ruby/, {only_path: "/nowhere"} => %r{\Aonly_path: the folder /nowhere does not exist},
      {only_path: 3} => /\Aonly_path: 3 is no folder's name/, {only_path: __FILE__} => /\Aonly_path: .*api_test.rb is a file: give its folder/
    }.each do |options, message|
      error = assert_raises(Rrtrace::Error, options.inspect) { Rrtrace::Settings.new(options, {}) }
      assert_match message, error.message
      assert_equal 1, error.message.lines.size
    end
    [["RRTRACE_ONLY", ","], ["RRTRACE_ONLY_PATH", ":"], ["RRTRACE_EXCEPT", "\n"]].each do |variable, text|
      error = assert_raises(Rrtrace::Error, variable) { Rrtrace::Settings.new({}, {variable => text}) }
      assert_match(/\A#{variable}: #{Regexp.escape(text.inspect)} has nothing in it/, error.message)
    end
    %w[Integer#times Kernel#puts? Nowhere#x Array#each* + [] Set#add].each { |word| assert Rrtrace::Settings.new({only: word}, {}) }
  end

  def test_options_win_over_the_environment_and_nil_does_not
    environment = {"RRTRACE_ON_FULL" => "drop", "RRTRACE_BLOCKS" => "1", "RRTRACE_C_CALLS" => "0", "RRTRACE_WINDOW" => ""}
    settings = Rrtrace::Settings.new({blocks: false, on_full: nil}, environment)
    assert_equal [1 << 20, true, false, false], settings.join_arguments
    assert_empty settings.visualizer_arguments, "an empty variable is one that is not set"
  end

  def test_the_exit_status_stays_the_programs_own
    {"exit 7" => 7, "exit!(8)" => 8, "raise 'no'" => 1, "abort" => 1, "1" => 0, "at_exit { exit 9 }" => 9}.each do |ending, code|
      ran = run_ruby("require 'rrtrace'; Rrtrace.start(window: false); #{ending}")
      assert_equal code, ran.code, "#{ending}: #{ran.err}"
    end
  end

  def test_without_a_window_a_program_ends_after_its_visualizer_is_done
    ran = run_ruby('require "rrtrace"; Rrtrace.start(window: false); print Process.pid')
    assert_includes log, "done #{ran.out}"
  end

  def test_with_a_window_a_program_does_not_wait_for_its_visualizer
    ran = run_ruby('require "rrtrace"; Rrtrace.start; print Process.pid',
      env: {"DISPLAY" => ":99", "RRTRACE_VISUALIZER" => fake_visualizer(done: "silent")})
    assert_predicate ran.status, :success?, "the helper ends a program that waits for long"
    assert_includes whole_log, "bye #{ran.out}"
  end

  def test_ctrl_c_ends_the_wait_for_the_visualizer_and_changes_no_status
    code = 'require "rrtrace"; Rrtrace.start(window: false); exit 5'
    pid = spawn(clean_environment.merge("RRTRACE_VISUALIZER" => fake_visualizer(done: "silent")),
      RbConfig.ruby, "-I", LIB, write("code.rb", code), err: temp_path("err"))
    wait_until("the program's end") { log.include?("bye #{pid}") }
    Process.kill(:INT, pid)
    _, status = Process.wait2(pid)
    assert_equal [5, ""], [status.exitstatus, File.read(temp_path("err"))]
  end

  def test_it_starts_and_stops_from_signal_handlers_once_it_is_loaded_and_from_one_of_many_threads
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      Rrtrace.trace(window: false) {}
      trap(:USR1) { $answer = Rrtrace.start(window: false) }
      trap(:USR2) { $answer = Rrtrace.stop }
      %i[USR1 USR2].each do |signal|
        $answer = nil
        Process.kill(signal, Process.pid)
        sleep 0.01 while $answer.nil?
        print $answer, " "
      end
      print Array.new(8) { Thread.new { Rrtrace.start(window: false) } }.map(&:value).count(true)
    RUBY
    assert_equal "true true 1", ran.out, ran.err
  end

  def test_a_first_start_in_a_signal_handler_says_how_to_do_it
    ran = run_ruby(<<~RUBY)
      require "rrtrace"
      trap(:USR1) do
        Rrtrace.start
      rescue Rrtrace::Error => error
        $said = error.message
      end
      Process.kill(:USR1, Process.pid)
      sleep 0.01 until $said
      print $said
    RUBY
    assert_match(/Thread\.new/, ran.out, ran.err)
  end

  def test_the_visualizer_stands_beside_the_extension_or_in_the_build
    refute_nil Rrtrace.native
    assert_includes [File.join(LIB, "rrtrace/rrtrace-visualizer"), File.join(ROOT, "build/release/rrtrace-visualizer")],
      Rrtrace.visualizer_path
  end

  def test_a_ruby_that_is_too_old_says_so_and_runs_the_program
    ran = run_ruby(<<~RUBY)
      Object.send(:remove_const, :RUBY_VERSION)
      RUBY_VERSION = "3.2.4"
      require "rrtrace/autorun"
      print defined?(Rrtrace).inspect
    RUBY
    assert_equal ["nil", "rrtrace: needs CRuby 3.3 or newer, not ruby 3.2.4; running untraced\n"], [ran.out, ran.err]
  end

  def test_an_extension_that_does_not_load_is_one_line_and_the_program_runs
    FileUtils.mkdir_p(temp_path("lib"))
    FileUtils.cp_r(Dir["#{LIB}/*"], temp_path("lib"))
    FileUtils.rm_f(temp_path("lib/rrtrace/rrtrace.so"))
    ran = run_program(RbConfig.ruby, "-I", temp_path("lib"), "-rrrtrace/autorun", "-e", "print 1")
    assert_equal "1", ran.out
    assert_match(/\Arrtrace: the extension does not load in Ruby #{RUBY_VERSION} .*; running untraced\n\z/o, ran.err)
  end

  def test_a_second_copy_of_the_library_leaves_the_first_at_work
    FileUtils.cp_r(LIB, temp_path("copy"))
    ran = run_program(RbConfig.ruby, "-w", "-I", LIB, "-rrrtrace/autorun", "-e",
      "require #{temp_path("copy/rrtrace").inspect}; print Rrtrace.started?, Rrtrace.stop")
    assert_equal ["truetrue", ""], [ran.out, ran.err]
  end

  def test_autorun_starts_at_once_and_requiring_the_api_after_it_is_no_second_start
    ran = run_program(RbConfig.ruby, "-w", "-I", LIB, "-rrrtrace/autorun", "-e", 'print Rrtrace.started?, require("rrtrace")')
    assert_equal ["truefalse", ""], [ran.out, ran.err]
  end
end
