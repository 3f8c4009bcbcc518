# frozen_string_literal: true

module Rrtrace
  # The settings of one session, from options and the environment, checked. Each option has a twin there: RRTRACE_BUFFER
  # for buffer:. An option that is nil counts as not given.
  #
  # This file is loaded inside other people's programs, so it requires nothing: a default gem loaded here could be
  # another version than the one in their bundle.
  class Settings # :nodoc:
    # option => [kind of value, default]
    TABLE = {
      output: [:path, nil],
      window: [:switch, true],
      shot: [:path, nil],
      buffer: [:size, 16 << 20], # 2**20 events
      memory: [:size, nil], # the visualizer's own default
      on_full: [:on_full, :wait],
      only: [:patterns, [].freeze],
      except: [:patterns, [].freeze],
      only_path: [:folders, [].freeze],
      blocks: [:switch, false],
      c_calls: [:switch, true],
      close_on_exit: [:switch, false],
      stats: [:switch, false]
    }.freeze
    # What a program in a session that is open needs to know; the rest went to the visualizer.
    FOR_PROGRAMS = %i[buffer on_full only except only_path blocks c_calls].freeze

    EVENT_BYTES = 16
    RANGES = {
      buffer: [128 << 10..4 << 30, "a buffer has 128K to 4G"], # wire/ring.h: RING_SLOTS_MIN to RING_SLOTS_MAX
      memory: [1 << 20.., "1M is the least"]
    }.freeze
    SWITCHES = {
      "1" => true, "true" => true, "yes" => true, "on" => true,
      "0" => false, "false" => false, "no" => false, "off" => false
    }.freeze
    UNITS = {"" => 0, "k" => 10, "m" => 20, "g" => 30, "t" => 40}.freeze
    # What stands between several values in an environment variable; where it is part of one, each stands on a line of its own.
    SEPARATORS = {patterns: ",", folders: ":"}.freeze
    WAIT_MS = {window: 1_000, recording: 60_000}.freeze

    class << self
      def env_name(key) = "RRTRACE_#{key.upcase}"

      # A value as it is given, as a string or as Ruby's own, checked and converted. name: how the user calls it.
      def parse(key, value, name)
        kind, = TABLE.fetch(key)
        return list(value).map { |item| parse_item(key, item, name) } if SEPARATORS.key?(kind)

        parsed = send(kind, value)
        raise Error, "#{name}: #{value.inspect} is #{WANTED.fetch(kind)}" if parsed.nil?
        range, words = RANGES[key]
        raise Error, "#{name}: #{value.inspect} is out of range; #{words}" unless range.nil? || range.cover?(parsed)

        parsed
      end

      # As parse, of an environment variable's value.
      def parse_env(key, text, name)
        kind, = TABLE.fetch(key)
        return parse(key, text, name) unless SEPARATORS.key?(kind)

        is_regex = kind == :patterns && text.start_with?("/")
        bytes = text.b # a file's name may have any, with which split and strip raise
        items = (bytes.include?("\n") || is_regex) ? bytes.split("\n") : bytes.split(SEPARATORS.fetch(kind)).map(&:strip)
        items.each { |item| item.force_encoding(text.encoding) }
        raise Error, "#{name}: #{text.inspect} has nothing in it: give a value, or unset it" if items.empty?

        parse(key, items, name)
      end

      # The text that parse_env reads these values from; nil: none.
      def env_text(kind, values)
        return if values.empty?

        separator = SEPARATORS.fetch(kind)
        (values.any? { |value| value.include?(separator) }) ? "#{values.join("\n")}\n" : values.join(separator)
      end

      # Is there a screen to open a window on?
      def display?
        %w[WAYLAND_DISPLAY DISPLAY].any? { |name| !ENV.fetch(name, "").empty? }
      end

      # Where a command of this name may lie, as execvp looks for it.
      def command_places(word)
        return [word] if word.include?("/")

        ENV.fetch("PATH", "").b.split(":").map { |folder| File.join(folder.empty? ? "." : folder, word.b) }
      end

      private

      WANTED = {
        path: "no file name; give one as a string",
        switch: "neither true nor false; give true or false, in the environment 1 or 0",
        size: "no size; give bytes, or a number with K, M or G: 64M, 1GiB",
        on_full: "not known; give wait or drop"
      }.freeze
      private_constant :WANTED

      def path(value)
        value = value.to_path if value.respond_to?(:to_path)
        File.expand_path(value) if value.is_a?(String) && !value.empty? && !value.include?("\0")
      end

      def switch(value)
        (value == true || value == false) ? value : SWITCHES[value.to_s.b.downcase]
      end

      def size(value)
        return (value if value.positive?) if value.is_a?(Integer)

        match = /\A(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?\z/i.match(value.to_s.b) or return
        bytes = (match[1].to_r * (1 << UNITS.fetch(match[2].downcase))).to_i
        bytes if bytes.positive?
      end

      def list(value) = value.is_a?(Array) ? value : [value]

      def parse_item(key, value, name)
        (TABLE.fetch(key).first == :folders) ? folder(value, name) : pattern(value, name, key)
      end

      def folder(value, name)
        path = path(value) or raise Error, "#{name}: #{value.inspect} is no folder's name; give one as a string"
        raise Error, "#{name}: #{path} is a file: give its folder" if File.file?(path)
        raise Error, "#{name}: the folder #{path} does not exist: correct the name" unless File.directory?(path)

        File.realpath(path)
      end

      def pattern(value, name, key)
        word = value.is_a?(Symbol) ? value.name : value
        trouble =
          if !word.is_a?(String) || word.include?("\0") then "give it as a string"
          elsif !word.valid_encoding? then "some of it is no text"
          else Rrtrace.native.pattern_trouble(word)
          end
        raise Error, "#{name}: #{value.inspect} is no pattern: #{trouble} (as in Foo#bar, Foo.*, Foo::*, save, /regex/)" if trouble
        raise Error, "#{name}: #{word} is not written in Ruby, so it can't be chosen; trace all, and look for it there" if key == :only && c_method?(word)

        word
      end

      # Does this name one method that is there already and is none of Ruby code? Asks nothing that a program may have overridden.
      def c_method?(word)
        match = /\A((?:::)?[A-Z]\w*(?:::[A-Z]\w*)*)([#.])([^*]+)\z/.match(word) or return false
        owner = match[1].split("::").reject(&:empty?).inject(Object) { |outer, constant| known(outer, constant.to_sym) or return false }
        owner = Kernel.instance_method(:singleton_class).bind_call(owner) if match[2] == "."
        method = Module.instance_method(:instance_method).bind_call(owner, match[3].to_sym)
        method.owner == owner && c_code?(RubyVM::InstructionSequence.of(method))
      rescue NameError, TypeError
        false
      end

      # Some of Ruby's own methods only stand for a C function, which Ruby calls without them.
      def c_code?(code)
        code.nil? || (code.path.start_with?("<internal:") && code.disasm.include?("opt_invokebuiltin_delegate_leave"))
      end

      # A module's constant, if it is a module and loaded.
      def known(outer, constant)
        return if Module.instance_method(:autoload?).bind_call(outer, constant, false)
        return unless Module.instance_method(:const_defined?).bind_call(outer, constant, false)

        value = Module.instance_method(:const_get).bind_call(outer, constant, false)
        value if Module === value
      end

      def on_full(value)
        {"wait" => :wait, "drop" => :drop}[value.to_s]
      end
    end

    attr_reader(*TABLE.keys)

    # options: as for Rrtrace.start, or as the command line has parsed them.
    def initialize(options, env = ENV)
      unknown = options.keys - TABLE.keys
      raise Error, "unknown option #{unknown.first}: known are #{TABLE.keys.join(", ")}" unless unknown.empty?

      TABLE.each do |key, (_kind, default)|
        name = self.class.env_name(key)
        value =
          if !options[key].nil? then self.class.parse(key, options[key], key)
          elsif !env.fetch(name, "").empty? then self.class.parse_env(key, env[name], name)
          else default
          end
        instance_variable_set(:"@#{key}", value)
      end
    end

    # For Native.join, after the socket: slots (a power of two), drop?, C calls?, blocks?
    def join_arguments
      slots = (buffer + EVENT_BYTES - 1) / EVENT_BYTES
      [1 << (slots - 1).bit_length, on_full == :drop, c_calls, blocks]
    end

    # For Native.select, before join.
    def selection = [only, except, only_path]

    # For Native.open_session. goes_on: behind what is recorded in output already. Raises Error when a file could not be
    # written.
    def visualizer_arguments(goes_on: false)
      arguments = []
      arguments << "--output=#{writable(:output)}" if output
      arguments << "--append" if output && goes_on
      arguments << "--no-window" unless window?
      arguments << "--shot=#{writable(:shot)}" if shot
      arguments << "--memory=#{memory}" if memory
      arguments << "--close-on-exit" if close_on_exit
      arguments << "--stats" if stats
      arguments
    end

    # Environment for a program that will join the session. A file of this session is no business of a later one that
    # the program may open.
    def program_environment
      environment = FOR_PROGRAMS.to_h { |key| [key, send(key)] }
      environment[:window] = window?
      SEPARATORS.each_key { |kind| TABLE.each { |key, (of, _)| environment[key] = self.class.env_text(kind, send(key)) if of == kind } }
      environment.transform_keys! { |key| self.class.env_name(key) }
      environment.transform_values! { |value| {true => "1", false => "0"}.fetch(value) { value&.to_s } }
      environment.merge("RRTRACE_OUTPUT" => nil, "RRTRACE_SHOT" => nil)
    end

    # How long a program that ends may wait for the visualizer: with a window it is the user who says when it is over;
    # without one the file must be complete when the command returns.
    def wait_ms
      (window? && self.class.display?) ? WAIT_MS[:window] : WAIT_MS[:recording]
    end

    private

    def window? = window && !shot

    def writable(key)
      path = send(key)
      place = File.dirname(path)
      around, file = [place, path].map { Rrtrace.native.look(_1) }
      raise Error, "#{key}: the folder #{place} does not exist: make it, or choose another" unless around&.first == :folder
      raise Error, "#{key}: #{path} is a folder: give a file name" if file&.first == :folder

      place = path if file
      _, can_write = file || around
      raise Error, "#{key}: #{place} may not be written to: choose another file" unless can_write

      path
    end
  end
end
