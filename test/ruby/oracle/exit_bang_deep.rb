# status: 5
# open: Object#down
# open: Array#each
# open: Kernel#exit!
# open: Object#last_words
# returns: unbalanced  (last_words is where the oracle writes its counts)
# counts: ruby
# No at_exit runs: what was sent must be there.
def last_words = 1
def leaf = Probe.here
def down(n)
  return [n].each { |x| down(x - 1) } unless n.zero?
  leaf
  last_words
  exit!(5)
end
down(10)
