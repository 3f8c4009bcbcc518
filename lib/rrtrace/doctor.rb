# frozen_string_literal: true

require "rbconfig"
require_relative "../rrtrace"
require_relative "settings"

module Rrtrace
  # `rrtrace doctor`: looks at all that tracing needs, and says of what is missing what to do about it.
  class Doctor
    EDITORS = %w[RRTRACE_EDITOR VISUAL EDITOR].freeze
    private_constant :EDITORS

    def initialize(out)
      @out = out
      @can_trace = true
    end

    # True when programs can be traced here, with or without a window.
    def run
      @out.puts "rrtrace #{VERSION}"
      ruby
      extension
      visualizer
      display
      editor
      @out.puts(@can_trace ? "Tracing works here." : "Tracing does not work here yet: see the lines with an exclamation mark.")
      @can_trace
    end

    private

    def ruby
      say "Ruby", "#{RUBY_VERSION} (#{RbConfig.ruby})"
    end

    def extension
      facts = Rrtrace.native.facts
      say "extension", "loads; clock: #{facts.fetch(:clock)}; #{positions(facts)}; #{ractors(facts)}; #{selection(facts)}"
      shared_memory(facts)
    rescue Error => error
      trouble "extension", error.message
    end

    def positions(facts)
      return "stack positions: verified, #{facts.fetch(:frame_bytes)} bytes a frame" if facts.fetch(:positions_verified)

      "stack positions: counted, as this Ruby lays out its frames in another way"
    end

    def ractors(facts)
      facts.fetch(:ractors_verified) ? "Ractors: traced by themselves" : "Ractors: traced inside Rrtrace.trace_ractor { … } only"
    end

    def selection(facts)
      facts.fetch(:code_verified) ? "--only: costs chosen methods alone" : "--only: costs all methods, as this Ruby lays out its code in another way"
    end

    def shared_memory(facts)
      if facts.fetch(:shared_memory)
        say "shared memory", File.writable?("/dev/shm") ? "works" : "works without /dev/shm, which may not be written to"
      else
        trouble "shared memory", "there is none: mount a tmpfs at /dev/shm, or raise the memory limit"
      end
    end

    def visualizer
      path = Rrtrace.visualizer_path
      lines = IO.popen([path, "--version"], err: %i[child out], &:readlines).map(&:chomp)
      return trouble("visualizer", "#{path} does not run: #{lines.first}") unless $?.success?

      say "visualizer", path, *lines
    rescue Error, SystemCallError => error
      trouble "visualizer", error.message
    end

    def display
      names = %w[WAYLAND_DISPLAY DISPLAY].reject { |name| ENV.fetch(name, "").empty? }
      if Settings.display?
        say "display", *names.map { |name| "#{name}=#{ENV[name]}" }
      else
        say "display", "none (DISPLAY and WAYLAND_DISPLAY are empty): sessions are recorded instead"
      end
    end

    # What Enter in the window opens a source with.
    def editor
      name = EDITORS.find { |one| !ENV.fetch(one, "").empty? }
      return say "editor", "none: set VISUAL, EDITOR or RRTRACE_EDITOR, and Enter in the window opens sources" unless name

      terminal = ENV.fetch("TERMINAL", "").split.first || "x-terminal-emulator"
      is_there = Settings.command_places(terminal).any? { |path| File.executable?(path) }
      say "editor", "#{name}=#{ENV[name]}", *("one that needs a terminal can't open: there is no #{terminal}; set TERMINAL" unless is_there)
    end

    def say(name, first, *more)
      @out.puts format("  %-15s %s", name, first)
      more.each { |line| @out.puts format("  %-15s   %s", "", line) }
    end

    def trouble(name, sentence)
      @can_trace = false
      @out.puts format("! %-15s %s", name, sentence)
    end
  end
end
