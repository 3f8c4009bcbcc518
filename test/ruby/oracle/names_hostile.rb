# Classes that answer every question about themselves with an exception, or a lie. Nobody may ask them.
class Evil < BasicObject
  ASKED = %i[name to_s inspect hash == === eql? equal? class singleton_class object_id frozen? is_a? kind_of? respond_to? send method
    instance_of? to_str to_sym ancestors instance_method]
  ASKED.each do |m|
    define_singleton_method(m) { |*| ::Kernel.raise "#{m} ran" }
    define_method(m) { |*| ::Kernel.raise "#{m} ran" }
  end
  def act = 1
  def self.react = 2
end

class Liar
  def self.name = "Honest"
  def self.to_s = "Honest"
  def self.inspect = "Honest"
  def self.hash = 1
  def self.==(other) = true
  def self.singleton_class = Object
  def self.attached_object = Object
  def class = String
  def lie = 3
end

class EvilThread < Thread
  def name = raise("name ran")
  def inspect = raise("inspect ran")
  def to_s = raise("to_s ran")
end

module EvilModule
  def self.name = raise("name ran")
  def self.to_s = raise("to_s ran")
  def self.inspect = raise("inspect ran")
  def mixed = 4
  refine Liar do
    def refined = 5
  end
end

using EvilModule
Evil.__send__(:include, EvilModule)
e = Evil.new
class << e
  def single = 6
end
4.times do
  e.act
  e.mixed
  e.single
  Evil.react
  Liar.new.lie
  Liar.new.refined
  EvilThread.new { Evil.react }.join
  Fiber.new { e.act }.resume
end
Symbol.class_eval { def to_s = "lie"; def inspect = "lie"; def name = "lie" }
e.act
