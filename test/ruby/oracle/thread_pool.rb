# again: mn
# counts: ruby
class Pool
  def initialize(n)
    @jobs = Queue.new
    @threads = n.times.map { |i| Thread.new { Thread.current.name = "pool #{i}"; loop { (job = @jobs.pop) ? job.call : break } } }
  end
  def post(&job) = @jobs << job
  def close
    @threads.size.times { @jobs << nil }
    @threads.each(&:join)
  end
end
def task(n) = n.zero? ? Probe.here : task(n - 1)
def failing = raise("x")
def guarded
  failing
rescue
  Probe.here
end
pool = Pool.new(6)
300.times { |i| pool.post { i % 10 == 0 ? guarded : task(i % 6) } }
pool.close
