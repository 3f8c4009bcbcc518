# frozen_string_literal: true

require_relative "picture"
require_relative "real"
require_relative "screen"

# For tests of a real window: a real X server of each test's own, the software driver, the validation layer on.
module RealWindow
  def self.included(test)
    test.prepend RealVisualizer # outermost: a window that is still open would be something left behind
  end

  def setup
    super
    @screen = Screen.new
  end

  def teardown
    super
  ensure
    @screen.close
  end

  def clean_environment = super.merge("DISPLAY" => @screen.display, "SDL_VIDEODRIVER" => "x11")

  # Runs rrtrace and waits for its window: [pid, file with its output].
  def open_window(*arguments, **rest)
    pid, @output = start_rrtrace(*arguments, **rest)
    @screen.find_window { flunk "no window; the output:\n#{File.read(@output)}" }
    [pid, @output]
  end

  # The same for a program that ends by itself, shown as flame chart.
  def open_ended(code)
    pid, = open_window(write("program.rb", code))
    assert_equal 0, wait_for_exit(pid).exitstatus
    wait_until("the last picture") { @screen.title.end_with?("(ended)") }
    @screen.key("2")
  end

  # A picture that is the same (or of which what the block takes is) as the one before: nothing moves any more.
  def settled_picture(pause: 0.4, &part)
    part ||= :itself.to_proc
    before = picture = nil
    wait_until("a picture that stands still") do
      picture = @screen.picture
      same = part.call(picture) == before
      before = part.call(picture)
      sleep pause
      same
    end
    picture
  end

  # Closes the window, in which nothing may have gone wrong.
  def quit
    @screen.key("ctrl+q")
    wait_until("the window to close") { !@screen.window? }
    refute_match(/validation|VUID|UNASSIGNED|picture has stopped/i, File.read(@output))
  end
end
