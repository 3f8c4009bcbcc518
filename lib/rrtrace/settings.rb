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
      blocks: [:switch, false],
      c_calls: [:switch, true],
      close_on_exit: [:switch, false],
      stats: [:switch, false]
    }.freeze
    # What a program in a session that is open needs to know; the rest went to the visualizer.
    FOR_PROGRAMS = %i[buffer on_full blocks c_calls].freeze

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
    WAIT_MS = {window: 1_000, recording: 60_000}.freeze

    class << self
      def env_name(key) = "RRTRACE_#{key.upcase}"

      # A value as it is given, as a string or as Ruby's own, checked and converted. name: how the user calls it.
      def parse(key, value, name)
        kind, = TABLE.fetch(key)
        parsed = send(kind, value)
        raise Error, "#{name}: #{value.inspect} is #{WANTED.fetch(kind)}" if parsed.nil?
        range, words = RANGES[key]
        raise Error, "#{name}: #{value.inspect} is out of range; #{words}" unless range.nil? || range.cover?(parsed)

        parsed
      end

      # Is there a screen to open a window on?
      def display?
        %w[WAYLAND_DISPLAY DISPLAY].any? { |name| !ENV.fetch(name, "").empty? }
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
        (value == true || value == false) ? value : SWITCHES[value.to_s.downcase]
      end

      def size(value)
        return (value if value.positive?) if value.is_a?(Integer)

        match = /\A(\d+(?:\.\d+)?) ?([kmgt]?)(?:i?b)?\z/i.match(value.to_s) or return
        bytes = (match[1].to_r * (1 << UNITS.fetch(match[2].downcase))).to_i
        bytes if bytes.positive?
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
          elsif !env.fetch(name, "").empty? then self.class.parse(key, env[name], name)
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
      environment.transform_keys! { |key| self.class.env_name(key) }
      environment.transform_values! { |value| {true => "1", false => "0"}.fetch(value) { value.to_s } }
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
      folder = File.dirname(path)
      raise Error, "#{key}: the folder #{folder} does not exist: make it, or choose another" unless File.directory?(folder)
      raise Error, "#{key}: #{path} is a folder: give a file name" if File.directory?(path)

      place = File.exist?(path) ? path : folder
      raise Error, "#{key}: #{place} may not be written to: choose another file" unless File.writable?(place)

      path
    end
  end
end
