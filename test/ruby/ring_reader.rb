# frozen_string_literal: true

require "socket"
require "tmpdir"
require "fileutils"

# A visualizer in Ruby, small and slow: listens, takes rings, drains them, and rebuilds the stacks with the rules in
# wire/event.h. The tests of the extension look through its eyes.
class RingReader
  KINDS = %i[call return gc_enter gc_exit started ready suspended resumed exited switch define span_begin span_end mark cut
    frame].freeze
  DEFINES = [nil, :method, :thread, :fiber, :process, :string, :clock, :dropped].freeze
  MAGIC = 0x48545252
  HEADER_BYTES = 4096
  HELLO, WELCOME, REFUSED, BYE, DONE = 1, 2, 3, 4, 5

  Event = Struct.new(:kind, :ticks, :number, :place, :payload)

  # One process's stream: the raw slots, decoded when asked for.
  class Stream
    attr_reader :pid, :ppid, :slot_count, :said_goodbye
    attr_accessor :socket

    def initialize(socket, hello, file)
      @socket = socket
      @pid, @ppid, @ring_bytes = hello.unpack("@8L<L<Q<")
      @file = file
      @slot_count = file.pread(8, 16).unpack1("Q<")
      @read_index = 0
      @chunks = []
    end

    def drain
      write_index = @file.pread(8, 128 + 8).unpack1("Q<")
      count = write_index - @read_index
      return false if count.zero?
      raise "write_index ran away: #{write_index} after #{@read_index}" if count > @slot_count
      slot = @read_index % @slot_count
      first = [count, @slot_count - slot].min
      @chunks << @file.pread(first * 16, HEADER_BYTES + slot * 16)
      @chunks << @file.pread((count - first) * 16, HEADER_BYTES) if count > first
      @read_index = write_index
      @file.pwrite([@read_index].pack("Q<"), 256)
      true
    end

    def dropped = @file.pread(8, 128 + 24).unpack1("Q<")
    def waits = @file.pread(8, 128 + 32).unpack1("Q<")
    def closed? = @file.pread(4, 128 + 40).unpack1("L<") == 1
    def magic = @file.pread(8, 0)
    def goodbye = @said_goodbye = true
    def bytes = @bytes ||= @chunks.join
    def slot_total = bytes.bytesize / 16

    def events
      @events ||= [].tap do |list|
        at = 0
        while at < bytes.bytesize
          head, number, place = bytes.unpack("Q<L<L<", offset: at)
          at += 16
          kind = KINDS[head >> 60]
          payload = nil
          if kind == :define
            payload = bytes.byteslice(at, place)
            at += (place + 15) / 16 * 16
          end
          list << Event.new(kind, head & ((1 << 60) - 1), number, place, payload)
        end
      end
    end

    def kinds = events.map(&:kind)

    def defines(what)
      code = DEFINES.index(what)
      events.select { _1.kind == :define && _1.number >> 28 == code }.map { [_1.number & 0xfffffff, _1.payload] }
    end

    MethodDef = Struct.new(:kind, :line, :name, :path)

    def methods_by_number
      @methods_by_number ||= defines(:method).to_h do |number, payload|
        kind, line, name_bytes, path_bytes = payload.unpack("L<4")
        [number, MethodDef.new(%i[ruby c block][kind], line, payload.byteslice(16, name_bytes),
          payload.byteslice(16 + name_bytes, path_bytes))]
      end
    end

    def process
      pid, ppid, source, ractor, realtime, argv_bytes, ruby_bytes = defines(:process).first[1].unpack("L<4Q<L<2")
      rest = defines(:process).first[1].byteslice(32..)
      {pid:, ppid:, source:, ractor:, realtime:, argv: rest.byteslice(0, argv_bytes).split("\0"),
       ruby: rest.byteslice(argv_bytes, ruby_bytes)}
    end

    # number => names, in order of definition
    def thread_names
      defines(:thread).each_with_object(Hash.new { |h, k| h[k] = [] }) do |(number, payload), names|
        bytes = payload.unpack1("@12L<")
        names[number] << payload.byteslice(16, bytes)
      end
    end

    def strings = defines(:string).to_h

    def calls(kind = nil)
      events.each_with_object(Hash.new(0)) do |event, counts|
        next unless event.kind == :call
        method = methods_by_number.fetch(event.number) { raise "CALL of an undefined method #{event.number}" }
        counts[method.name.dup.force_encoding("UTF-8")] += 1 if kind.nil? || method.kind == kind
      end
    end

    Span = Struct.new(:name, :kind, :fiber, :thread, :depth, :closed_by, :at_start, :parent) do
      # names, outermost first
      def ancestors
        names = []
        at = self
        names.unshift(at.name) while (at = at.parent)
        names
      end

      def inspect = "#<span #{name}>"
    end

    # Every frame with its fate, by the rules of wire/event.h.
    def spans
      @spans ||= replay
    end

    def spans_named(name) = spans.select { _1.name == name }

    private

    def key(position) = (-(position & ~3 & 0xffffffff) + (position & 3)) & 0xffffffff

    def deeper?(a, b)
      difference = (a - b) & 0xffffffff
      difference != 0 && difference < 0x80000000
    end

    def replay
      stacks = Hash.new { |h, k| h[k] = [] }
      made = []
      fiber = thread = nil
      cut = ->(stack, &keep_going) { stack.pop[2].closed_by = :unwound while stack.any? && keep_going.call(stack.last[0]) }
      events.each do |event|
        k = key(event.place)
        case event.kind
        when :switch then fiber, thread = event.number, event.place
        when :call, :frame
          raise "#{event.kind} before any SWITCH" unless fiber
          stack = stacks[fiber]
          cut.call(stack) { |top| !deeper?(k, top) }
          method = methods_by_number.fetch(event.number)
          span = Span.new(method.name.dup.force_encoding("UTF-8"), method.kind, fiber, thread, stack.size, nil,
            event.kind == :frame, stack.last&.last)
          stack.push([k, event.number, span])
          made << span
        when :return
          raise "RETURN before any SWITCH" unless fiber
          stack = stacks[fiber]
          cut.call(stack) { |top| deeper?(top, k) }
          top = stack.last
          if top && (event.number.zero? ? top[0] == k : top[1] == event.number && top[2].kind == :c)
            top[2].closed_by = :return
            stack.pop
          end
        when :cut
          cut.call(stacks[fiber]) { |top| !deeper?(k, top) }
        end
      end
      made
    end
  end

  attr_reader :path, :streams, :folder

  # answer: :welcome, :silent, or a String (the reason of a refusal); hangs_up: right after its last word, as the visualizer does;
  # answers_after: so many seconds
  def initialize(answer: :welcome, drain: true, hangs_up: false, answers_after: 0)
    @folder = Dir.mktmpdir("rrtrace-test")
    @path = File.join(@folder, "session")
    @answer = answer
    @drain = drain
    @hangs_up = hangs_up
    @answers_after = answers_after
    @streams = []
    @clients = []
    @server = Socket.new(:UNIX, :SEQPACKET)
    @server.bind(Addrinfo.unix(@path, :SEQPACKET))
    @server.listen(64)
    @lock = Mutex.new
    @thread = Thread.new { serve }
    @thread.report_on_exception = true
  end

  def draining=(value)
    @drain = value
  end

  # Everything of what has joined is read when all connections are closed; raises after some seconds.
  def finish(seconds = 20)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until @lock.synchronize { @clients.empty? && @streams.any? }
      raise "the program did not close its connection" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      sleep 0.005
    end
    sleep 0.02
    close
    @streams
  end

  def close
    @thread.kill
    @thread.join
    @clients.each { |client, _| client.close }
    @server.close
    FileUtils.rm_rf(@folder)
  end

  private

  def message(type, text = "") = [MAGIC, 1, type, Process.pid, 0, 0, 1, 0, text].pack("L<S<S<L<L<Q<L<L<a96")

  def serve
    loop do
      moved = @lock.synchronize { @drain && @streams.map(&:drain).any? }
      ready, = IO.select([@server, *@clients.map(&:first)], nil, nil, moved ? 0 : 0.002)
      ready&.each { (_1 == @server) ? @lock.synchronize { @clients << [@server.accept.first, nil] } : hear(_1) }
    end
  end

  def hear(client)
    bytes, _, _, *controls = client.recvmsg(128, 0, 4096, scm_rights: true)
    return leave(client) if bytes.nil? || bytes.empty?
    case bytes.unpack1("@6S<")
    when HELLO
      file = controls.flat_map { _1.unix_rights || [] }.first
      return if @answer == :silent
      return client.send(message(REFUSED, @answer), 0) if @answer.is_a?(String)
      sleep @answers_after
      stream = Stream.new(client, bytes, file)
      @lock.synchronize do
        @streams << stream
        @clients.find { _1.first == client }[1] = stream
      end
      client.send(message(WELCOME), 0)
    when BYE
      stream = stream_of(client)
      @lock.synchronize { stream.drain }
      stream.goodbye
      client.send(message(DONE), 0)
      leave(client) if @hangs_up
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    leave(client)
  end

  def stream_of(client) = @clients.find { _1.first == client }&.last

  def leave(client)
    @lock.synchronize do
      stream_of(client)&.drain
      @clients.reject! { _1.first == client }
    end
    client.close
  end
end
