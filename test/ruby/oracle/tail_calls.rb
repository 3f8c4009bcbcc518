# returns: unbalanced  (a frame that is replaced says no RETURN)
RubyVM::InstructionSequence.compile_option = {tailcall_optimization: true, trace_instruction: false}
eval(<<~'RUBY')
  def walk(n) = n.zero? ? leaf : walk(n - 1)
  def even(n) = n.zero? ? leaf : odd(n - 1)
  def odd(n) = even(n - 1)
RUBY
RubyVM::InstructionSequence.compile_option = {tailcall_optimization: false, trace_instruction: false}
def leaf = 1
def outer(n)
  walk(n)
  Probe.here
end
outer(500)
even(200)
Probe.here
