# frozen_string_literal: true

# Another copy is at work already: the command line's own comes before the one in a program's bundle.
return if defined?(Rrtrace::Error)

require_relative "rrtrace/version"

# Shows this program as it runs: every method call, thread, GC pause and GVL hand-over, in a window or a picture.
#
#   Rrtrace.trace(shot: "import.png") { import }     # this block
#   Rrtrace.start; …; Rrtrace.stop                   # from here to there
#   Rrtrace.span("checkout") { … }                   # name a stretch of time
#   Rrtrace.mark("cache cleared")                    # name a moment
#
# Loading this file starts nothing, and loads nothing else, unless the environment says RRTRACE=1.
# The methods may be called from any thread and from signal handlers; but the first start has files to load, which Ruby
# does not do in a signal handler. In Ractors beyond the main one, started?, span, mark and trace_ractor work; start and stop
# are the main one's.
module Rrtrace
  # What every failure of this library raises; the message says what to do about it.
  class Error < StandardError; end

  MAIN_ONLY = "tracing is started and stopped in the main Ractor; inside another one, Rrtrace.trace_ractor { … } is what there is"
  private_constant :MAIN_ONLY

  @native = nil         # the extension, from the first start on
  @is_changing = false  # inside start or stop
  @session = nil        # the socket of the session that start opened, else nil
  @outer_session = nil  # what RRTRACE_SESSION said before
  @wait_ms = 0          # how long to wait at the end for the picture or recording to be complete
  @has_autostarted = false
  @recorded = {}        # path => true: this program has recorded into it

  class << self
    # Starts tracing this process: joins the session that RRTRACE_SESSION names when it is alive, else opens one.
    # The options have the environment's RRTRACE_WINDOW, … as defaults:
    #
    # output::        record into this file as well; the next trace of the same program goes on in it
    # window::        false: no window
    # shot::          draw one picture into this PNG file at the end, without a window
    # buffer::        bytes of the ring buffer, as a number or "64M", "1GiB"; rounded up to a power of two
    # memory::        bytes that the visualizer may keep spans in, likewise
    # on_full::       :wait (for the visualizer, when the buffer is full: nothing is lost) or :drop (and count)
    # only::          trace these methods alone: "Foo#bar", "Foo.*", "Foo::*", "save", "/regex/", or several in an Array; all others
    #                 run at full speed. Methods written in C are left out
    # except::        leave these out, likewise
    # only_path::     trace the methods of the files below this folder alone (or these, in an Array)
    # blocks::        true: trace blocks too
    # c_calls::       false: leave out methods written in C
    # close_on_exit:: true: the window closes when the program ends
    # stats::         true: without a window, a line at the end on stderr: what came in, waited, was dropped
    #
    # True when tracing began, false when it was on already. Raises Error.
    def start(**options)
      start_with(options) { |settings| open_session(settings) }
    end

    # Stops tracing and, without a window, waits until the picture or recording is finished. False when tracing was off.
    def stop
      return false if @is_changing || !started?

      @is_changing = true
      begin
        leave
      ensure
        @is_changing = false
      end
      true
    rescue Ractor::IsolationError
      raise Error, MAIN_ONLY
    end

    # Is this process being traced now? False again after the window was closed.
    def started?
      @native ? @native.joined? : false
    end

    # Traces the block and returns its value. Options as for start. Inside another trace it just runs the block.
    def trace(**options)
      raise Error, "Rrtrace.trace needs a block: Rrtrace.trace { … }, or Rrtrace.start and Rrtrace.stop" unless block_given?

      is_ours = start(**options)
      begin
        yield
      ensure
        stop if is_ours
      end
    end

    # For use inside a Ractor: runs the block, which is traced, and returns its value. Where this Ruby lets Ractors be traced
    # by themselves (rrtrace doctor says so) it changes nothing; elsewhere the Ractor is traced from here until it ends.
    # Without tracing it just runs the block.
    def trace_ractor
      raise Error, "Rrtrace.trace_ractor needs a block: Ractor.new { Rrtrace.trace_ractor { … } }" unless block_given?

      @native.attach_ractor if started? && !Ractor.current.equal?(Ractor.main)
      yield
    end

    # Shows the block's run as one named span, and returns its value. Without tracing it just runs the block.
    def span(name)
      raise Error, "Rrtrace.span needs a block: Rrtrace.span(\"name\") { … }" unless block_given?
      return yield unless started?

      id = @native.span_begin(name.to_s)
      begin
        yield
      ensure
        @native.span_end(id)
      end
    end

    # Names this moment. Without tracing it does nothing.
    def mark(name)
      @native.mark(name.to_s) if started?
      nil
    end

    # The visualizer program: RRTRACE_VISUALIZER, else the gem's, else the one built in this checkout. Raises Error.
    def visualizer_path
      named = ENV.fetch("RRTRACE_VISUALIZER", "")
      return checked_visualizer(named) unless named.empty?

      extension = $LOAD_PATH.resolve_feature_path("rrtrace/rrtrace")&.last
      folders = [extension && File.dirname(extension), File.join(__dir__, "rrtrace"), File.expand_path("../build/release", __dir__)]
      folders.compact.map { |folder| File.join(folder, "rrtrace-visualizer") }.find { |path| runnable?(path) } or
        raise Error, "the program rrtrace-visualizer is not there: reinstall the gem rrtrace, or run bin/setup in a checkout"
    end

    # The extension's module, loaded on first use. Raises Error.
    def native # :nodoc:
      @native ||= begin
        require "rrtrace/rrtrace"
        Native
      rescue LoadError => error
        raise Error, "the extension does not load in Ruby #{RUBY_VERSION} (#{error.message.lines.first.to_s.chomp}): " \
          "reinstall the gem rrtrace with this Ruby, or run bin/setup in a checkout"
      end
    end

    # For RRTRACE=1 and rrtrace/autorun: start, or say in one line why not and let the program run. When the session
    # is over, say nothing and open no other: a closed window would come back with every child process, and the
    # picture would be drawn over.
    def autostart # :nodoc:
      return if @has_autostarted

      @has_autostarted = true
      start_with({}) do |settings, error|
        raise error if error && File.socket?(outer_session)

        error ? false : open_session(settings)
      end
    rescue => error # also one of ours that nobody has thought of: the program is not to end for it
      warn "rrtrace: #{error.message}; running untraced"
    end

    private

    # Joins the outer session. When there is none, or with the error when it can't be joined, asks the block, which
    # answers whether it has opened one.
    def start_with(options)
      return false if @is_changing
      return Settings.new(options) && false if started? # what is wrong is wrong now, too

      @is_changing = true
      begin
        require_relative "rrtrace/settings"
        settings = Settings.new(options)
        native.select(*settings.selection)
        leave_in_time(settings) # first, as this code would be what the trace begins with
        is_joined, error = join_outer(settings)
        is_joined || yield(settings, error)
      rescue ThreadError # from require
        raise Error, "the first start can't be made in a signal handler: write trap(…) { Thread.new { Rrtrace.start } }"
      ensure
        @is_changing = false
      end
    rescue Ractor::IsolationError # from the first assignment
      raise Error, MAIN_ONLY
    end

    def outer_session
      path = ENV.fetch("RRTRACE_SESSION", "")
      path unless path.empty?
    end

    def join_outer(settings)
      [outer_session && @native.join(outer_session, *settings.join_arguments), nil]
    rescue Error => error
      [false, error]
    end

    def open_session(settings)
      path = @native.open_session(visualizer_path, settings.visualizer_arguments(goes_on: @recorded[settings.output]))
      @recorded[settings.output] = true if settings.output
      @outer_session = ENV["RRTRACE_SESSION"]
      @session = ENV["RRTRACE_SESSION"] = path
      @native.join(path, *settings.join_arguments)
      true
    rescue Error
      forget_session
      raise
    end

    def leave_in_time(settings)
      @wait_ms = settings.wait_ms
      @native.leave_at_exit(@wait_ms)
    end

    def leave
      @native.leave(@wait_ms)
    ensure
      forget_session
    end

    def forget_session
      ENV["RRTRACE_SESSION"] = @outer_session if @session && ENV["RRTRACE_SESSION"] == @session
      @session = @outer_session = nil
    end

    def checked_visualizer(path)
      runnable?(path) ? path : raise(Error, "RRTRACE_VISUALIZER=#{path} is no program that can be run: correct or unset it")
    end

    # The extension asks without letting other threads in between.
    def runnable?(path)
      return File.file?(path) && File.executable?(path) unless @native

      kind, _, can_run = @native.look(path)
      kind == :file && can_run
    end
  end

  autostart unless ["", "0", "false", "no", "off"].include?(ENV.fetch("RRTRACE", ""))
end
