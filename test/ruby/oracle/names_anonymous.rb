# Owners without a name of their own.
class Mine < Module
  def included(base) = super
end

def deep = Probe.here

a = Class.new { def meth = deep; def self.build = new; define_method(:defined) { 1 } }
b = Module.new { def self.mod = deep; def mixed = 2 }
c = Mine.new { def mine = 3 }
d = Class.new(a) { include b; include c; def meth = super }
o = Object.new
def o.single = deep
o.define_singleton_method(:other) { 4 }
class << o
  attr_accessor :value
  def <<(x) = x
end
class Blank < BasicObject
  def blank = 5
  def method_missing(name, *) = blank
end
e = Blank.new
class << e
  def alone = 6
end
s = +"text"
def s.only = 7
class << Blank
  def meta = 8
  class << self
    def deeper = 9
  end
end
5.times do
  a.build.meth
  a.new.defined
  b.mod
  d.new.mixed
  d.new.mine
  d.build.meth
  o.single
  o.other
  o.value = 1
  o << 2
  e.blank
  e.missing
  e.alone
  s.only
  Blank.meta
  Blank.singleton_class.deeper
end
Class.new { const_set(:Inner, Class.new { def inner = 10 }) }::Inner.new.inner
