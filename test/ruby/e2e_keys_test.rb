# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/window"

# Every key that the window's list (?) has and no other test presses, in a real window with the validation layer on: each must
# change the picture, or do what the list says.
class E2EKeysTest < Minitest::Test
  include TestHelp
  include RealWindow

  PROGRAM = <<~RUBY
    def alpha = sleep(0.3)

    def beta(n) = n.zero? ? sleep(0.2) : beta(n - 1)
    3.times { alpha; beta(12) }
  RUBY

  AXIS_Y = 720 - 38 - 46 # of a chart, in a window of 1280 by 720

  # Without the lines at the top and the bottom, of which the hint fades.
  def film = scene_of(@screen.picture)
  def settled = scene_of(settled_picture(pause: 0.2) { scene_of(_1) })
  def scene_of(picture) = picture.rows(44, 600)

  def differs?(one, other)
    count = 0
    (0...one.height).step(2) { |y| (0...one.width).step(2) { |x| count += 1 unless Picture.close?(one[x, y], other[x, y], 24) } }
    count > 30
  end

  def changes(name)
    before = settled
    yield
    wait_until("#{name} to change the picture") { differs?(before, film) }
  end

  def test_keys_and_the_mouse_move_time_rows_and_the_scene
    open_ended(PROGRAM)
    changes("S") { @screen.key("s", "s") }
    changes("0") { @screen.key("0") }
    @screen.key("w", "w", "w", "w")
    %w[d Left Right a].each { |name| changes(name) { @screen.key(name) } }
    %w[Down Up].each { |name| changes(name) { @screen.key(name, name) } }
    %w[alt ctrl shift].each { |name| changes("#{name} and the wheel") { @screen.holding(name) { @screen.wheel(2, [640, 300]) } } }
    changes("Home") { @screen.key("Home") }
    changes("a left drag of the chart") { @screen.drag(1, [640, 300], [500, 300]) }
    changes("an Alt drag, which turns it") { @screen.holding("alt") { @screen.drag(1, [640, 300], [560, 260]) } }
    changes("a left drag of the scene") { @screen.drag(1, [640, 300], [560, 260]) }
    changes("a Shift drag with the middle button") { @screen.holding("shift") { @screen.drag(2, [640, 300], [560, 260]) } }
    changes("F1") { @screen.key("F1") }
    changes("Escape, which closes the list") { @screen.key("Escape") }
    quit
  end

  def test_keys_search_step_copy_and_measure
    open_ended(PROGRAM)
    changes("Ctrl+F") { @screen.key("ctrl+f") }
    @screen.type("alpha")
    changes("Shift+Enter, which goes to the last match") { @screen.key("shift+Return") }
    @screen.key("Tab") # the line is closed
    changes("Shift+N") { @screen.key("shift+n") }
    changes("N") { @screen.key("n") }
    @screen.key("Escape") # the search; the call stays selected
    changes("a comma") { @screen.key("comma") }
    changes("a full stop") { @screen.key("period") }
    @screen.key("c")
    wait_until("the clipboard") { @screen.clipboard == "Object#alpha #{temp_path("program.rb")}:1" }
    changes("Shift+V") { @screen.key("shift+v") }
    @screen.key("v", "Escape")
    changes("a drag along the time axis") { @screen.drag(1, [300, AXIS_Y], [700, AXIS_Y]) }
    changes("Escape, which takes the measure away") { @screen.key("Escape") }
    quit
  end
end
