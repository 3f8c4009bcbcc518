# frozen_string_literal: true

require "test_helper"
require "rrtrace/cli"
require "stringio"

class CliTest < Minitest::Test
  include TestHelp

  # [code, stdout, stderr] of a command line that does not come to exec.
  def run_cli(*argv)
    out, err = StringIO.new, StringIO.new
    code = Rrtrace::CLI.run(argv, out: out, err: err)
    [code, out.string, err.string]
  end

  def test_the_version_and_the_help_go_to_standard_output
    assert_equal [0, "rrtrace #{Rrtrace::VERSION}\n", ""], run_cli("--version")
    assert_equal run_cli("--version"), run_cli("-v")
    code, out, err = run_cli("--help")
    assert_equal [0, ""], [code, err]
    assert_equal out, run_cli("-h")[1]
    assert_operator out.lines.size, :<=, 32, "the help fits a screen"
    assert_operator out.lines.map { |line| line.chomp.size }.max, :<=, 80
    (Rrtrace::CLI::OPTIONS.keys.map { |key| key.to_s.tr("_", "-") } + Rrtrace::CLI::SUBCOMMANDS.keys).each do |word|
      assert_includes out, word
    end
  end

  def test_misuse_is_one_line_and_code_2
    {
      [] => /no command given, as in: rrtrace app\.rb/,
      ["--no-widnow", "x"] => /no such option: --no-widnow; did you mean --no-window\?/,
      ["--bufer=3", "x"] => /no such option: --bufer=3; did you mean --buffer\?/,
      ["-q"] => /no such option: -q/,
      ["--buffer"] => /--buffer: missing argument/,
      ["--buffer", "3q", "x"] => /--buffer: "3q" is no size; give bytes/,
      ["--on-full", "burst", "x"] => /--on-full: "burst" is not known; give wait or drop/,
      ["--memory=1", "x"] => /--memory: "1" is out of range/,
      ["--only", "/(/", "x"] => %r{--only: "/\(/" is no pattern: .+},
      ["--except", "Foo#", "x"] => /--except: "Foo#" is no pattern: it names no method \(as in Foo#bar/,
      ["--only", "Array#each", "x"] => /--only: Array#each is not written in Ruby, so it can't be chosen/,
      ["--only-path", "/no/such/folder", "x"] => %r{--only-path: the folder /no/such/folder does not exist},
      ["--x\xFF", "x"] => /no such option: --x\xFF/n,
      ["--buffer", "1\xFF", "x"] => /--buffer: "1\\xFF" is no size; give bytes/,
      ["--only", "\xFF", "x"] => /--only: "\\xFF" is no pattern: some of it is no text/,
      ["--no-window", "doctor"] => /options of doctor come after it/,
      ["doctor", "now"] => /doctor takes no arguments/
    }.each do |argv, message|
      code, out, err = run_cli(*argv)
      assert_equal [2, "", 1], [code, out, err.lines.size], argv.inspect
      assert_match(/\Arrtrace: /, err.b)
      assert_match message, message.fixed_encoding? ? err.b : err
    end
  end

  def test_files_folders_and_arguments_may_have_any_bytes
    script = write("app\xFF.rb", "puts ARGV.first.b.inspect")
    ran = run_rrtrace("--shot", "a\xFF.png", "--only-path", temp_path, script, "x\xFF", env: {"PATH" => "/nowhere\xFF:#{ENV["PATH"]}"})
    assert_equal ["\"x\\xFF\"\n", 0], [ran.out, ran.code], ran.err
    assert_includes whole_log.join("\n").b, "--shot=#{temp_path("a\xFF.png")}".b
    ran = run_rrtrace("no\xFFsuch")
    assert_equal [127, "rrtrace: no\xFFsuch: command not found\n"], [ran.code, ran.err]
  end

  def test_doctor_lists_what_works_here
    ran = run_rrtrace("doctor")
    assert_equal 0, ran.code, ran.out + ran.err
    assert_match(/Ruby +#{Regexp.escape(RUBY_VERSION)} .*extension +loads; clock: .*shared memory +works.*visualizer +#{temp_path}.*window: no.*display +none/m, ran.out)
    assert_match(/editor +none: set VISUAL/, run_rrtrace("doctor", env: {"RRTRACE_EDITOR" => nil, "VISUAL" => nil, "EDITOR" => ""}).out)
    lost = run_rrtrace("doctor", env: {"RRTRACE_EDITOR" => nil, "VISUAL" => "vim -R", "TERMINAL" => "/nowhere/xterm"})
    assert_match(%r{editor +VISUAL=vim -R\n.*there is no /nowhere/xterm}, lost.out)
    assert_equal 0, lost.code
    ran = run_rrtrace("doctor", env: {"RRTRACE_VISUALIZER" => "/nowhere"})
    assert_equal 1, ran.code
    assert_match(%r{^! visualizer +RRTRACE_VISUALIZER=/nowhere is no program}, ran.out)
  end

  def test_the_command_keeps_its_input_output_arguments_and_status
    script = write("shout.rb", 'print $stdin.read.upcase, ARGV.inspect; warn "to stderr"; exit 42')
    ran = run_rrtrace("--no-window", script, "-v", "--help", "a b", "--", stdin: "hello ")
    assert_equal 'HELLO ["-v", "--help", "a b", "--"]', ran.out
    assert_equal ["to stderr\n", 42], [ran.err, ran.code]
    assert_equal 1, hellos(whole_log).size
  end

  def test_a_file_that_ends_in_rb_is_run_with_this_ruby_and_other_words_by_the_path
    write("app.rb", "print RbConfig.ruby, RUBY_VERSION")
    assert_equal RbConfig.ruby + RUBY_VERSION, run_rrtrace("app.rb").out
    write("tools/app.sh", "#!/bin/sh\necho from the path\n", mode: 0o755)
    assert_equal "from the path\n", run_rrtrace("app.sh", env: {"PATH" => "#{temp_path("tools")}:#{ENV["PATH"]}"}).out
  end

  def test_a_command_that_is_no_ruby_just_runs
    assert_equal 0, run_rrtrace("--", "true").code
    assert_equal 1, run_rrtrace("--", "false").code
    whole_log(sessions: 2)
    assert_empty hellos(log)
  end

  def test_a_shells_ruby_children_join_too
    ran = run_rrtrace("sh", "-c", "'#{RbConfig.ruby}' -e 'print Rrtrace.started?'; '#{RbConfig.ruby}' -e 'print Rrtrace.started?'; exit 4")
    assert_equal ["truetrue", "", 4], [ran.out, ran.err, ran.code]
  end

  def test_what_cannot_be_run_is_said_as_a_shell_does_and_opens_no_session
    write("plain", "no program")
    {
      "no-such-command" => [127, "rrtrace: no-such-command: command not found\n"],
      "./no-such-file.rb" => [127, "rrtrace: ./no-such-file.rb: no such file\n"],
      "./plain" => [126, "rrtrace: ./plain: may not be executed\n"],
      temp_path => [126, "rrtrace: #{temp_path}: is a folder\n"],
      "" => [127, "rrtrace: : command not found\n"]
    }.each do |command, (code, message)|
      ran = run_rrtrace("--", command)
      assert_equal [code, "", message], [ran.code, ran.out, ran.err]
    end
    assert_empty log
  end

  def test_a_program_whose_interpreter_is_missing_is_one_line_and_its_session_ends
    write("broken", "#!/nowhere/interpreter\n", mode: 0o755)
    ran = run_rrtrace("./broken")
    assert_equal 126, ran.code
    assert_equal 1, ran.err.lines.size, ran.err
    whole_log
  end

  def test_after_two_dashes_a_subcommands_name_is_a_command
    write("tools/view", "#!/bin/sh\necho $1\n", mode: 0o755)
    assert_equal "file\n", run_rrtrace("--", "view", "file", env: {"PATH" => "#{temp_path("tools")}:#{ENV["PATH"]}"}).out
  end

  def test_signals_reach_the_command_and_end_it
    script = write("wait.rb", "puts :ready; $stdout.flush; sleep")
    {INT: 2, TERM: 15, KILL: 9}.each do |signal, number|
      out, in_child = IO.pipe
      pid = spawn(clean_environment, RbConfig.ruby, EXE, "--no-window", script, out: in_child, err: File::NULL)
      in_child.close
      assert_equal "ready\n", out.gets
      Process.kill(signal, pid)
      _, status = Process.wait2(pid)
      assert_equal number, status.termsig, signal
    end
    whole_log(sessions: 3)
  end

  def test_the_users_rubyopt_and_rubylib_are_kept
    write("first.rb", "$first = defined?(Rrtrace) && Rrtrace.started?") # not defined in rrtrace itself
    ran = run_rrtrace(write("app.rb", 'print $first, " ", ENV["RUBYOPT"], " ", $LOAD_PATH.include?(ENV["EXTRA"])'),
      env: {"RUBYOPT" => "-W1 -rfirst", "RUBYLIB" => temp_path, "EXTRA" => temp_path})
    assert_equal "true -I#{LIB} -rrrtrace/autorun -W1 -rfirst true", ran.out, ran.err
  end

  def test_it_works_from_a_folder_whose_name_has_spaces
    copy = temp_path("a folder with spaces")
    FileUtils.mkdir_p(copy)
    FileUtils.cp_r([LIB, File.join(ROOT, "exe")], copy)
    script = write("my scripts/say it.rb", "print Rrtrace.started?, $LOADED_FEATURES.grep(/autorun/)")
    ran = run_program(RbConfig.ruby, "#{copy}/exe/rrtrace", script)
    assert_equal "true[#{File.join(copy, "lib/rrtrace/autorun.rb").inspect}]", ran.out, ran.err
    assert_equal "", ran.err
  end

  def test_options_reach_the_visualizer_and_the_program
    script = write("app.rb", 'print ENV.values_at("RRTRACE_BUFFER", "RRTRACE_ON_FULL", "RRTRACE_BLOCKS", "RRTRACE_C_CALLS", "RRTRACE_WINDOW", "RRTRACE_SHOT").inspect')
    ran = run_rrtrace("--shot", "run.png", "--memory", "2M", "--buffer=1M", "--on-full=drop", "--blocks",
      "--no-c-calls", "--close-on-exit", script)
    assert_equal ["1048576", "drop", "1", "0", "0", nil].inspect, ran.out, ran.err
    assert_includes log, "arguments --no-window --shot=#{temp_path("run.png")} --memory=2097152 --close-on-exit"
    assert_equal 1, log.grep(/\Adone/).size, "without a window the command ends when all is written"
  end

  def test_choices_of_methods_reach_the_program
    FileUtils.mkdir_p(temp_path("a:b"))
    run_rrtrace("--only", "Foo#bar", "--only", "/a,b/", "--except", "save", "--only-path", ".", "--only-path", "a:b", "--", "ruby",
      write("show.rb", 'File.write("env", ENV.slice("RRTRACE_ONLY", "RRTRACE_EXCEPT", "RRTRACE_ONLY_PATH").inspect)'))
    folder = File.realpath(temp_path)
    assert_equal({"RRTRACE_ONLY" => "Foo#bar\n/a,b/\n", "RRTRACE_EXCEPT" => "save", "RRTRACE_ONLY_PATH" => "#{folder}\n#{folder}/a:b\n"}.inspect,
      File.read(temp_path("env")))
  end

  def test_the_environment_gives_defaults_that_options_win_over
    run_rrtrace("--window", "--keep-open", write("app.rb", ""),
      env: {"RRTRACE_WINDOW" => "0", "RRTRACE_CLOSE_ON_EXIT" => "1", "RRTRACE_MEMORY" => "4M"})
    assert_includes whole_log, "arguments --memory=4194304"
  end

  def test_an_rrtrace_inside_an_rrtrace_opens_its_own_session
    ran = run_rrtrace(RbConfig.ruby, EXE, write("app.rb", 'print ENV["RUBYOPT"].scan("autorun").size'))
    assert_equal ["1", ""], [ran.out, ran.err]
    assert_equal 2, whole_log(sessions: 2).grep(/\Aarguments/).size
  end

  def test_a_wrong_setting_in_the_environment_is_an_error
    ran = run_rrtrace("true", env: {"RRTRACE_BLOCKS" => "maybe"})
    assert_equal [1, "rrtrace: RRTRACE_BLOCKS: \"maybe\" is neither true nor false; give true or false, in the environment 1 or 0\n"], [ran.code, ran.err]
  end
end
