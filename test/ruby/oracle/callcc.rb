# returns: unbalanced  (a continuation returns as often as it is called)
require "continuation"
def leaf = Probe.here
def mark = callcc { |k| k }
def again
  @n = 0
  k = callcc { |c| c }
  @n += 1
  leaf
  k.call(k) if @n < 4
  leaf
end
def leave(n, k) = n.zero? ? k.call(:out) : leave(n - 1, k)
def escape
  callcc { |k| [1].each { leave(5, k) } }
  leaf
end
again
escape
leaf
