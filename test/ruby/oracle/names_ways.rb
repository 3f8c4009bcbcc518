# again: yjit
# Every way to define a method, and who then owns it.
module Loud
  refine String do
    def shout = upcase + exclaim
    def exclaim = "!"
    def to_str = super
  end
  refine Integer do
    def double = self * 2
  end
end
using Loud

module Tools
  module_function

  def tool(x) = helper(x)
  def helper(x) = x
end

module Extra
  def extra = 1
  def shared = :extra
end

module Before
  def shared = [:before, super]
  def work(*) = super
end

class Base
  def work(n = 0) = n
  def shared = :base
  def self.build(...) = new(...)
  def self.inherited(sub) = super
  class << self
    def open_class = hidden
    private def hidden = 2
    attr_accessor :setting
  end
end

class Ways < Base
  include Extra
  prepend Before
  extend Extra
  include Comparable
  attr_accessor :accessor
  attr_reader :reader
  attr_writer :writer

  def initialize(n = 1) = @n = n
  def work(n = 1) = super(n) + 1
  alias task work
  alias_method :job, :task
  def shared = [:ways, super]
  def +(other) = [self, other]
  def -@ = self
  def !  = false
  def [](i) = i
  def []=(i, v)
    @v = v
  end
  def setter=(v)
    @v = v
  end
  def <=>(other) = 0
  def call(*) = 3
  def to_proc = proc { |x| x }
  def =~(other) = nil
  def predicate? = true
  def bang! = self
  def coerce(other) = [other, 1]
  def to_s = "ways"
  def each
    yield 1
    yield 2
  end
  def method_missing(name, *args) = name.start_with?("ghost") ? real(*args) : super
  def respond_to_missing?(name, _ = false) = name.start_with?("ghost") || super
  def real(*) = 4
  protected def guarded = 5
  private def secret = 6
  def reach(other) = [other.guarded, secret]
  %w[one two three].each { |n| define_method(n) { n } }
  define_method(:copied, instance_method(:real))
  define_method(:with_args) { |a, b = 2, *c, d:, e: 5, **f, &g| [a, b, c, d, e, f] }
  define_singleton_method(:made) { 7 }
end

def top(n) = n
def self.only_main = 8
Point = Struct.new(:x, :y) { def sum = x + y }
Pair = Data.define(:left, :right) { def both = [left, right] }

w = Ways.build(3)
3.times do
  w.work
  w.task
  w.job
  w.shared
  w + 1
  -w
  !w
  w[1]
  w[1] = 2
  w.setter = 3
  w < w
  w.()
  [1].each(&w)
  w =~ 1
  w.predicate?
  w.bang!
  1 + w rescue 0
  "#{w}"
  w.each { |x| x }
  w.ghost_a
  w.ghost_b 1, 2
  w.respond_to?(:ghost_c)
  w.reach(Ways.new)
  w.one
  w.two
  w.copied
  w.with_args(1, d: 4)
  Ways.made
  w.accessor = 1
  w.accessor
  w.reader
  w.writer = 1
  w.extra
  Ways.extra
  Ways.open_class
  Ways.setting = 1
  Ways.setting
  Tools.tool(1)
  top(1)
  only_main
  "a".shout
  2.double
  Point.new(1, 2).sum
  Pair.new(left: 1, right: 2).both
  w.send(:secret)
  w.__send__(:real)
  w.public_send(:real)
  w.method(:real).call
  w.method(:task).unbind.bind(w).call
  Ways.instance_method(:real).bind_call(w)
  %w[a b].map(&:upcase)
  [3, 1].sort_by { |x| -x }
  w.then { |x| x.real }
  w.tap(&:real)
  w.instance_eval { real }
  w.instance_exec(1) { |x| real(x) }
  Ways.class_eval { real rescue 0 }
  eval("w.real")
  Object.new.extend(Extra).extra
  (w.nothing rescue 0)
  Probe.here
end
class Ways
  undef_method :real
  def bang! = 1
  remove_method :predicate?
end
(w.real rescue 0)
w.bang!
