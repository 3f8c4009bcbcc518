# frozen_string_literal: true

# Loaded into the programs of oracle/ before they run, twice: once counts a pure-Ruby TracePoint (ORACLE_OUT names the file for
# its counts), once the extension (RECORD_OUT names its recording, or SESSION the socket of a RingReader). What both runs do is the same, so the counts must be.

# Where the program is, as the VM itself says: test programs call Probe.here in places where a stack is easily wrong.
class Probe
  LOG = File.open(ENV.fetch("PROBE_OUT"), File::WRONLY | File::APPEND | File::CREAT)
  # Not frames of methods.
  OTHERS = /\A(block |rescue |ensure |<)/

  def self.here
    labels = caller_locations(1).map(&:base_label_of_method).compact
    LOG.syswrite("#{Process.pid} #{labels.reverse.join(" ")}\n")
  end
end

class Thread::Backtrace::Location
  # nil where the frame is no method's
  def base_label_of_method = Probe::OTHERS.match?(label) ? nil : label
end

if ENV["ORACLE_OUT"]
  module Oracle
    CALLS = Hash.new(0)
    RETURNS = Hash.new(0)
    NAMES = {}.compare_by_identity
    LOCK = Mutex.new

    # The program's own methods of these names are none of our business.
    MODULE_NAME = Module.instance_method(:name)
    IS_SINGLETON = Module.instance_method(:singleton_class?)
    ATTACHED = Class.instance_method(:attached_object)
    CLASS = Kernel.instance_method(:class)
    SYMBOL_NAME = Symbol.instance_method(:name)
    TARGET = Refinement.instance_method(Refinement.method_defined?(:target) ? :target : :refined_class)

    class << self
      def name_of(mod)
        named = MODULE_NAME.bind_call(mod)
        return named if named
        return "#<refinement:#{name_of(TARGET.bind_call(mod))}>" if Refinement === mod
        return "#<#{name_of(CLASS.bind_call(mod))}:0x>" unless singleton?(mod)

        attached = ATTACHED.bind_call(mod)
        (Module === attached) ? "#<Class:#{name_of(attached)}>" : "#<Class:#<#{name_of(CLASS.bind_call(attached))}:0x>>"
      end

      def qualified(owner, method)
        owner_words = "#{name_of(owner)}#" unless singleton?(owner)
        owner_words ||=
          case attached = ATTACHED.bind_call(owner)
          when Module then "#{name_of(attached)}."
          else "#<#{name_of(CLASS.bind_call(attached))}>."
          end
        owner_words.b << SYMBOL_NAME.bind_call(method).b
      end

      def singleton?(mod) = Class === mod && IS_SINGLETON.bind_call(mod)

      def write
        File.binwrite("#{ENV.fetch("ORACLE_OUT")}.#{Process.pid}", Marshal.dump([CALLS.to_a, RETURNS.to_a]))
      end

      # A process that was forked counts from here on.
      def forget
        CALLS.clear
        RETURNS.clear
        @pid = Process.pid
      end

      def count(point)
        forget if @pid != Process.pid
        return if ENV["ORACLE_OWN"] && !(point.event == :call && point.path == $PROGRAM_NAME)
        kind = point.event.start_with?("c_") ? :c : :ruby
        into = point.event.end_with?("call") ? CALLS : RETURNS
        into[[kind, qualified(point.defined_class, point.method_id)]] += 1
        write if point.method_id == :last_words # of a program that will run no at_exit
      end
    end

    forget
    POINT = TracePoint.new(:call, :return, :c_call, :c_return) { |point| count(point) }
    at_exit do
      POINT.disable
      write
    end
    POINT.enable
  end
else
  require "rrtrace/rrtrace"
  at_exit { Rrtrace::Native.leave(10_000) }
  session = ENV["SESSION"] || Rrtrace::Native.open_session(ENV.fetch("RRTRACE_VISUALIZER"), ["--no-window", "--output=#{ENV.fetch("RECORD_OUT")}"])
  Rrtrace::Native.join(session, 1 << 16, false, true, false)
end
