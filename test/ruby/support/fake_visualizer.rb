# frozen_string_literal: true

# Stands in for rrtrace-visualizer where a test asks what the Ruby side does: speaks the session's protocol
# (wire/handshake.h), empties rings without looking at them (wire/ring.h), and writes what happens into a log, a line each:
#
#   arguments --no-window …     hello PID     bye PID     done PID     gone PID     over
#
# fake_visualizer.rb LOG DONE OPTIONS…: OPTIONS are those of the real one; DONE is "done", or "silent" to never answer BYE.
# It runs in any Ruby, without gems, and ends when all programs and the process that opened the session have gone.
require "fiddle"
require "socket"

log_path, done, *options = ARGV.map(&:b)
value = ->(name) { options.grep(/\A--#{name}=/).first&.split("=", 2)&.last }
LOG = File.open(log_path, "a")
LOG.sync = true
LOG.puts "arguments #{options.grep_v(/\A--(detach|listen-fd=|socket=|watch-pid=)/).join(" ")}"

MAGIC = 0x48545252
VERSION = 1
HELLO, WELCOME, BYE, DONE = 1, 2, 4, 5
MESSAGE = "L<S<S<L<L<Q<L<L<a96"
WRITE_INDEX_OFFSET = 136
READ_INDEX_OFFSET = 256

# One program's connection and, from HELLO on, its ring.
class Program
  MMAP = Fiddle::Function.new(Fiddle.dlopen(nil)["mmap"],
    [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_INT, Fiddle::TYPE_INT, Fiddle::TYPE_INT, Fiddle::TYPE_LONG],
    Fiddle::TYPE_VOIDP)

  attr_reader :socket

  def initialize(socket, answers_bye)
    @socket = socket
    @answers_bye = answers_bye
  end

  # False when the program has gone.
  def receive
    bytes, _, _, *controls = @socket.recvmsg(128, 0, nil, scm_rights: true)
    return gone if bytes.nil? || bytes.empty?

    _, _, type, @pid, _, ring_bytes = bytes.unpack(MESSAGE)
    case type
    when HELLO then hello(controls.flat_map(&:unix_rights).compact.first, ring_bytes)
    when BYE then bye
    end
    true
  rescue Errno::ECONNRESET, Errno::EPIPE
    gone
  end

  def empty_ring
    @ring[READ_INDEX_OFFSET, 8] = @ring[WRITE_INDEX_OFFSET, 8] if @ring
  end

  private

  def hello(file, ring_bytes)
    read_write, shared = 3, 1
    @ring = Fiddle::Pointer.new(MMAP.call(nil, ring_bytes, read_write, shared, file.fileno, 0).to_i, ring_bytes)
    LOG.puts "hello #{@pid}"
    answer(WELCOME)
  end

  def bye
    LOG.puts "bye #{@pid}"
    return unless @answers_bye

    sleep 0.2 # so that a program which does not wait is gone before the next line
    LOG.puts "done #{@pid}"
    answer(DONE)
  end

  def gone
    LOG.puts "gone #{@pid}"
    false
  end

  def answer(type)
    @socket.sendmsg([MAGIC, VERSION, type, Process.pid, 0, 0, 0, 0, ""].pack(MESSAGE))
  end
end

def alive?(pid)
  Process.kill(0, pid)
  true
rescue Errno::ESRCH
  false
rescue Errno::EPERM
  true
end

exit if fork # --detach: who waits for the program's output does not wait for us
[$stdout, $stderr].each { |io| io.reopen(File::NULL) }
Process.setsid
listener = Socket.for_fd(Integer(value["listen-fd"]))
programs = []
give_up_at = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
while programs.any? || alive?(Integer(value["watch-pid"]))
  break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > give_up_at

  ready, = IO.select([listener, *programs.map(&:socket)], nil, nil, 0.005)
  programs.each(&:empty_ring)
  ready&.each do |socket|
    if socket == listener
      programs << Program.new(listener.accept.first, done == "done")
    else
      program = programs.find { |candidate| candidate.socket == socket }
      programs.delete(program) unless program.receive
    end
  end
end
File.unlink(value["socket"])
Dir.rmdir(File.dirname(value["socket"]))
LOG.puts "over"
