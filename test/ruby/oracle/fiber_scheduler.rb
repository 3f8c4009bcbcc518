# counts: ruby
# A scheduler of the program's own: hooks are called by the VM, fibers are switched in the middle of blocking calls.
class Scheduler
  def initialize
    @ready = []
    @waiting = {}
    @blocked = 0
  end
  def run
    until @ready.empty? && @waiting.empty?
      ready, @ready = @ready, []
      ready.each { |f| f.resume if f.alive? }
      now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      @waiting.select { |_, t| t <= now }.each_key { |f| @waiting.delete(f); f.resume }
    end
  end
  def close = run
  def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)
  def kernel_sleep(seconds = 0)
    @waiting[Fiber.current] = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    Fiber.yield
  end
  def block(blocker, timeout = nil) = Fiber.yield
  def unblock(blocker, fiber) = @ready << fiber
  def io_wait(io, events, timeout) = events
  def fiber_interrupt(fiber, exception) = nil
end
def nap(n)
  sleep(0.001)
  Probe.here
  n
end
def job(n) = n.zero? ? nap(n) : job(n - 1)
Thread.new do
  Fiber.set_scheduler(Scheduler.new)
  5.times { |i| Fiber.schedule { job(i) } }
  q = Queue.new
  Fiber.schedule { q.pop; Probe.here }
  Fiber.schedule { job(2); q << 1 }
end.join
# How often the scheduler looks is a matter of time.
