# frozen_string_literal: true

# A restaurant's evening in twenty seconds: something of everything that rrtrace shows.
#
#   Waiter    takes orders into a queue                          waiting for I/O and on a Queue
#   Cooks     unfold recipes, fold dough, share one oven         deep recursion, a contended Mutex, the GVL's hand-overs
#   Washer    breaks plates                                      garbage, and the GC's pauses
#   Cashier   writes receipts line by line                       fibers, each with a stack of its own
#   Supplier  comes when the flour runs out                      a pipe, spans and marks
#
# bin/demo runs it. DEMO_SECONDS=5 makes a short evening of it.
require_relative "../lib/rrtrace" unless defined?(Rrtrace)

class Recipe
  attr_reader :name, :parts

  def initialize(name, *parts)
    @name = name
    @parts = parts
  end

  # A recipe is made of recipes: the recursion that you see as stairs.
  def prepare(cook)
    parts.each { |part| part.prepare(cook) }
    cook.stir(name)
  end

  DOUGH = new("dough", new("flour"), new("water"), new("yeast", new("sugar"), new("warm water")))
  SAUCE = new("sauce", new("tomatoes"), new("herbs", new("basil"), new("oregano")), new("onions", new("butter")))
  ALL = [
    new("pizza", DOUGH, SAUCE, new("cheese")),
    new("lasagne", new("pasta", DOUGH, new("eggs")), SAUCE, new("cream", new("milk"), new("butter"))),
    new("focaccia", DOUGH, new("oil"), new("salt"))
  ].freeze
end

# One oven for all cooks.
class Oven
  def initialize
    @door = Mutex.new
  end

  def bake(_dish)
    @door.synchronize { sleep 0.04 }
  end
end

class Cook
  def initialize(kitchen)
    @kitchen = kitchen
  end

  def work
    while (order = @kitchen.orders.pop)
      order.prepare(self)
      fold_dough(12)
      @kitchen.oven.bake(order)
      @kitchen.served.push(order)
    end
  end

  def stir(what)
    turns = 0
    turns += turn_spoon(what) while turns < 1_500
  end

  def turn_spoon(what)
    what.length.clamp(1, 5)
  end

  # Twice as many layers each time.
  def fold_dough(times)
    return 1 if times.zero?

    fold_dough(times - 1) + fold_dough(times - 1)
  end
end

class Waiter
  def initialize(kitchen)
    @kitchen = kitchen
  end

  def work
    while @kitchen.open?
      listen_to_guests
      rand(2..4).times { @kitchen.orders.push(Recipe::ALL.sample) }
    end
    @kitchen.orders.close
  end

  def listen_to_guests
    sleep rand(0.05..0.2)
  end
end

class Washer
  def initialize(kitchen)
    @kitchen = kitchen
  end

  def work
    while @kitchen.open?
      stack_plates(4_000)
      sleep 0.15
    end
  end

  # Thousands of short-lived objects: food for the garbage collector.
  def stack_plates(count)
    Array.new(count) { |number| {plate: "plate #{number}", food: "rest " * 20} }.map(&:inspect).join.size
  end
end

class Cashier
  def initialize(kitchen)
    @kitchen = kitchen
    @dishes = 0
  end

  attr_reader :dishes

  def work
    while (order = @kitchen.served.pop)
      receipt = write_receipt(order)
      print_line(receipt.resume) while receipt.alive?
      @dishes += 1
    end
  end

  # A fiber that hands over one line at a time.
  def write_receipt(order)
    Fiber.new do
      Fiber.yield "One #{order.name}"
      list_parts(order)
      "Thank you"
    end
  end

  def list_parts(recipe, depth = 1)
    recipe.parts.each do |part|
      Fiber.yield "#{" " * depth}#{part.name}"
      list_parts(part, depth + 1)
    end
  end

  def print_line(line) = line.center(40)
end

class Supplier
  def initialize(kitchen)
    @kitchen = kitchen
  end

  def work
    road, van = IO.pipe
    driver = Thread.new { drive(van) }
    driver.name = "driver"
    while @kitchen.open?
      Rrtrace.span("delivery") { unload(road) }
      Rrtrace.mark("flour is back")
    end
    driver.join
  end

  def drive(van)
    while @kitchen.open?
      sleep 0.6
      van.puts "flour " * 200
    end
    van.close
  end

  # Blocked in a read until the van is there.
  def unload(road)
    road.gets&.split&.tally
  end
end

class Kitchen
  attr_reader :orders, :served, :oven

  def initialize(seconds)
    @closes_at = now + seconds
    @orders = Queue.new
    @served = Queue.new
    @oven = Oven.new
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def open? = now < @closes_at

  def run
    cashier = Cashier.new(self)
    cooks = %w[Anna Ben Chen].map { |name| staff("cook #{name}", Cook.new(self)) }
    others = [staff("waiter", Waiter.new(self)), staff("washer", Washer.new(self)), staff("supplier", Supplier.new(self))]
    till = staff("cashier", cashier)
    report(cashier) while open?
    [*cooks, *others].each(&:join)
    served.close
    till.join
    cashier.dishes
  end

  private

  def staff(name, person)
    Thread.new { person.work }.tap { |thread| thread.name = name }
  end

  def report(cashier)
    sleep 1
    puts format("  %2d s to go, %3d dishes served, %d orders waiting", [@closes_at - now, 0].max, cashier.dishes, orders.size)
  end
end

seconds = Float(ENV.fetch("DEMO_SECONDS", "20"))
puts "The restaurant opens for #{seconds.round} seconds: three cooks, one oven, a waiter, a washer, a cashier and a supplier."
$stdout.sync = true
dishes = Kitchen.new(seconds).run
puts "Closed. #{dishes} dishes were served."
