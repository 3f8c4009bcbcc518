# counts: own
# The debugger of Ruby's own gems: breakpoints that run commands, a watch, a catch, and stepping in other threads.
begin
  require "debug/session"
rescue LoadError
  module DEBUGGER__; def self.start(**) = nil; end
  class Binding; def break(**) = nil; end
end
DEBUGGER__.start(nonstop: true)
def leaf = Probe.here
def work(n)
  binding.break(do: "info") if n == 2
  n.zero? ? leaf : work(n - 1)
end
def fail_softly
  raise ArgumentError, "x"
rescue
  binding.break(do: "bt")
  leaf
end
def threaded = Thread.new { work(3) }.join
binding.break(do: "break Object#leaf do: p 1")
2.times { work(4) }
fail_softly
threaded
leaf
