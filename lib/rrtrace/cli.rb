# frozen_string_literal: true

require "optparse"
require "rbconfig"
require_relative "../rrtrace"
require_relative "settings"

module Rrtrace
  # The command line. It opens a session, puts what the command needs to join it into the environment, and becomes the
  # command by exec: exit status, signals, standard input and output are the command's own.
  class CLI
    DONE, FAILED, MISUSED = 0, 1, 2
    NOT_RUNNABLE, NOT_FOUND = 126, 127 # as shells do

    class Misuse < StandardError; end

    # Word => [what it takes, what it does, who does it]. A command of the same name: rrtrace -- view
    SUBCOMMANDS = {
      "view" => ["[FILE]", "open a recording in the window", :visualizer],
      "report" => ["[FILE]", "tables of methods, threads, GC", :visualizer],
      "export" => ["[FILE] -f FORMAT", "convert for other tools", :visualizer],
      "shot" => ["[FILE] [-o PNG]", "draw one picture of a recording", :visualizer],
      "doctor" => ["", "what works here, and what to do about it", :here]
    }.freeze

    # Option => words for optparse. The values are checked by Settings.
    OPTIONS = {
      output: ["-o", "--output FILE", "record into FILE as well"],
      window: ["--[no-]window", "show it in a window [yes]"],
      shot: ["--shot FILE", "no window: draw one picture at the end (PNG)"],
      only: ["--only PATTERN", "trace only these methods; others cost nothing [all]"],
      except: ["--except PATTERN", "leave these methods out [none]"],
      only_path: ["--only-path DIR", "trace only methods of files below DIR"],
      blocks: ["--[no-]blocks", "trace blocks too [no]"],
      c_calls: ["--[no-]c-calls", "trace methods written in C [yes]"],
      buffer: ["--buffer SIZE", "buffer between program and window [16M]"],
      memory: ["--memory SIZE", "what the window may keep in memory [1G]"],
      on_full: ["--on-full ACTION", "when the buffer is full: wait or drop events [wait]"],
      close_on_exit: ["--close-on-exit", "the window closes when the command ends"],
      stats: ["--stats", "without a window: say at the end what came in"]
    }.freeze

    # Returns the exit code, if the command was not run by exec.
    def self.run(argv, out: $stdout, err: $stderr)
      new(out, err).run(argv)
    end

    def initialize(out, err)
      @out = out
      @err = err
      @given = {}
    end

    def run(argv)
      command, is_plain = split(argv)
      return @done if @done
      return subcommand(*command) if is_plain && SUBCOMMANDS.key?(command.first)

      trace(command)
    rescue Misuse => error
      complain(error.message, MISUSED)
    rescue Error, SystemCallError => error
      complain(error.message, FAILED)
    end

    private

    # Reads the options into @given. Returns the command, and whether its first word may be a subcommand.
    def split(argv)
      @encoding = argv.first&.encoding
      rest = parser.order(argv.map(&:b)) # arguments may have any bytes, with which optparse raises
      return if @done
      raise Misuse, "no command given, as in: rrtrace app.rb (rrtrace --help)" if rest.empty?

      rest = argv.last(rest.size)
      options = argv.first(argv.size - rest.size)
      [rest, options.last != "--"]
    rescue OptionParser::InvalidOption, OptionParser::AmbiguousOption => error
      raise Misuse, no_such_option(error.args.first)
    rescue OptionParser::ParseError => error
      raise Misuse, "#{error.args.first}: #{error.reason} (rrtrace --help)"
    end

    def parser
      @parser ||= OptionParser.new do |parser|
        parser.banner = usage
        parser.summary_width = 21
        parser.summary_indent = "  "
        parser.raise_unknown = true
        OPTIONS.each do |key, words|
          parser.on(*words) { |value| @given[key] = (value = checked(key, value, words)).is_a?(Array) ? [*@given[key], *value] : value }
        end
        parser.on("--keep-open", "the window stays (the default)") { @given[:close_on_exit] = false }
        parser.on("-v", "--version", "print the version") { finish "rrtrace #{VERSION}" }
        parser.on("-h", "--help", "print this") { finish "#{parser.help}\n#{after_help}" }
      end
    end

    def checked(key, value, words)
      name = words.find { |word| word.start_with?("--") }.sub("[no-]", "")[/\A\S+/]
      value.force_encoding(@encoding) if value.is_a?(String)
      Settings.parse(key, value, name)
    rescue Error => error
      raise Misuse, error.message
    end

    def no_such_option(word)
      names = parser.top.list.grep(OptionParser::Switch).flat_map(&:long).reject { |name| name.include?("[") }
      names += %w[--no-window --no-c-calls --no-blocks]
      nearest = defined?(DidYouMean::SpellChecker) && DidYouMean::SpellChecker.new(dictionary: names).correct(word[/\A[^=]+/]).first
      "no such option: #{word}#{"; did you mean #{nearest}?" if nearest} (rrtrace --help)"
    end

    def usage
      lines = SUBCOMMANDS.map do |name, (arguments, what)|
        format("       rrtrace %-24s %s", "#{name} #{arguments}", what)
      end
      <<~TEXT
        Usage: rrtrace [options] [--] COMMAND [ARGS…]
        #{lines.join("\n")}

        Runs COMMAND and shows, live, every method call, thread and GC pause in it:
          rrtrace app.rb · rrtrace irb · rrtrace rails server · rrtrace -- rspec

        Options, all before COMMAND:
      TEXT
    end

    def after_help
      <<~TEXT
        PATTERN: Foo#bar, Foo.bar, Foo (and all inside), save (in any class), /regex/;
        * is any text: Foo#*, *#save. Repeat these options at will. SIZE: 64M, 1GiB.
        Environment: RRTRACE_WINDOW=0, …; RRTRACE=1 traces what loads the gem itself.
        No window, no display, or R in it: records rrtrace-YYYYMMDD-HHMMSS-PID.rrt.
      TEXT
    end

    def finish(text)
      @out.puts text
      @done = DONE
      @parser.terminate
    end

    def complain(message, code)
      @err.puts "rrtrace: #{message}"
      code
    end

    def subcommand(name, *arguments)
      raise Misuse, "options of #{name} come after it: rrtrace #{name} --help" unless @given.empty?

      _, _, who = SUBCOMMANDS.fetch(name)
      (who == :here) ? doctor(arguments) : become({}, [Rrtrace.visualizer_path, name, *arguments])
    end

    def doctor(arguments)
      raise Misuse, "doctor takes no arguments" unless arguments.empty?

      require_relative "doctor"
      Doctor.new(@out).run ? DONE : FAILED
    end

    def trace(command)
      if command.first.end_with?(".rb") && File.file?(command.first)
        command = [RbConfig.ruby, *command]
      end
      code, why = trouble_with(command.first)
      return complain(why, code) if code # before a window opens

      settings = Settings.new(@given)
      socket = Rrtrace.native.open_session(Rrtrace.visualizer_path, settings.visualizer_arguments)
      become(environment(socket, settings), command)
    end

    # Returns only when that fails, as for a script whose interpreter is missing.
    def become(environment, command)
      exec(environment, [command.first, command.first], *command.drop(1))
    rescue SystemCallError => error
      complain("#{command.first} can't be run: #{error.message}", NOT_RUNNABLE)
    end

    # Nil when the word can be run, else the exit code and the reason.
    def trouble_with(word)
      there = Settings.command_places(word).select { |path| File.exist?(path) }
      return if there.any? { |path| File.file?(path) && File.executable?(path) }
      return NOT_FOUND, "#{word}: #{word.end_with?(".rb") ? "no such file" : "command not found"}" if there.empty? || word.empty?

      [NOT_RUNNABLE, "#{word}: #{File.directory?(there.first) ? "is a folder" : "may not be executed"}"]
    end

    def environment(socket, settings)
      settings.program_environment.merge("RRTRACE_SESSION" => socket, **ruby_environment)
    end

    # How the extension gets into every Ruby below the command. RUBYOPT is split at spaces and knows no quotes, so a
    # path that has some goes through RUBYLIB, where colons are what separates.
    def ruby_environment
      folders = [File.expand_path("..", __dir__), extension_folder].uniq
      through_rubylib, through_rubyopt = folders.partition { |folder| folder.match?(/\s/) }
      own = [*through_rubyopt.map { |folder| "-I#{folder}" }, "-rrrtrace/autorun"].join(" ")
      rubyopt = ENV.fetch("RUBYOPT", "")
      rubyopt = [own, rubyopt].reject(&:empty?).join(" ") unless rubyopt.start_with?(own) # inside another rrtrace
      rubylib = [*through_rubylib, *ENV["RUBYLIB"]].join(":")
      {"RUBYOPT" => rubyopt, "RUBYLIB" => (rubylib unless rubylib.empty?)}
    end

    # The load path's folder that has rrtrace/rrtrace.so: RubyGems may keep extensions apart.
    def extension_folder
      Rrtrace.native
      feature = $LOADED_FEATURES.find { |path| path.match?(%r{/rrtrace/rrtrace\.(so|bundle)\z}) }
      File.dirname(feature, 2)
    end
  end
end
