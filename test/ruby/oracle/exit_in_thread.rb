# status: 4
# counts: ruby
# exit in a thread unwinds the main thread, wherever that is.
def leaf = Probe.here
def wait_here(q)
  q << 1
  sleep
ensure
  leaf
end
def leave(n) = n.zero? ? exit(4) : leave(n - 1)
q = Queue.new
Thread.new { q.pop; leave(5) }
at_exit { leaf }
wait_here(q)
