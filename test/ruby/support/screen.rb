# frozen_string_literal: true

require "open3"
require_relative "picture"

# A display of a test's own: a real X server without a screen (Xvfb), a window on it found by name, keys and pointer.
class Screen
  WIDTH, HEIGHT = 1920, 1200

  attr_reader :display

  # Without -noreset the server starts anew whenever its last client leaves, and turns away who comes meanwhile.
  def initialize
    reader, writer = IO.pipe
    @pid = Process.spawn("Xvfb", "-displayfd", writer.fileno.to_s, "-screen", "0", "#{WIDTH}x#{HEIGHT}x24", "-nolisten", "tcp", "-noreset",
      writer => writer, [:out, :err] => File::NULL)
    writer.close
    number = reader.gets or raise "Xvfb did not start"
    @display = ":#{number.strip}"
  end

  def close
    Process.kill(:TERM, @pid)
    Process.wait(@pid)
  end

  # Waits for our window and gives it the keyboard (there is no window manager to do that).
  # Yields when there is none in time.
  def find_window(seconds: 40)
    deadline = now + seconds
    until (@window = x("xdotool", "search", "--onlyvisible", "--name", "^rrtrace").split.first)
      yield if now > deadline
      sleep 0.1
    end
    x("xdotool", "windowfocus", "--sync", @window)
    @window
  end

  def window? = !x("xdotool", "search", "--name", "^rrtrace").split.empty?
  def title = x("xdotool", "getwindowname", @window).strip
  def key(*names) = x("xdotool", "key", *names)

  # Signs that the keyboard may have anywhere.
  def type(text) = x("xdotool", "type", "--delay", "40", text)

  def resize(width, height) = x("xdotool", "windowsize", @window, width.to_s, height.to_s)
  def minimize = x("xdotool", "windowunmap", "--sync", @window)
  def restore = x("xdotool", "windowmap", "--sync", @window)

  # The window system takes the window away, as it does when its server goes.
  def destroy_window = x("xdotool", "windowclose", @window)

  # Drag with a button from one place in the window to another.
  def drag(button, from, to)
    x("xdotool", "mousemove", "--window", @window, *from.map(&:to_s), "mousedown", button.to_s)
    4.times { |i| x("xdotool", "mousemove", "--window", @window, *from.zip(to).map { |a, b| (a + (b - a) * (i + 1) / 4).to_s }) }
    x("xdotool", "mouseup", button.to_s)
  end

  # While a key is held down.
  def holding(name)
    x("xdotool", "keydown", name)
    yield
  ensure
    x("xdotool", "keyup", name)
  end

  def click(at) = x("xdotool", "mousemove", "--window", @window, *at.map(&:to_s), "sleep", "0.3", "click", "1")

  # What an application that pastes would get.
  def clipboard = x("xclip", "-out", "-selection", "clipboard")

  def wheel(notches, at)
    x("xdotool", "mousemove", "--window", @window, *at.map(&:to_s))
    notches.abs.times { x("xdotool", "click", (notches.positive? ? 4 : 5).to_s) }
  end

  def geometry
    text = x("xdotool", "getwindowgeometry", "--shell", @window)
    %w[X Y WIDTH HEIGHT].map { |name| text[/^#{name}=(-?\d+)/, 1].to_i }
  end

  # What is in the window now.
  def picture
    20.times do # a window that is being resized may be of another size a moment later
      _, _, width, height = geometry
      bytes, status = Open3.capture2({"DISPLAY" => display}, "import", "-window", @window, "-depth", "8", "rgb:-", binmode: true)
      raise "import failed" unless status.success?

      return Picture.new(width, height, bytes) if bytes.bytesize == width * height * 3
    end
    raise "the window's size does not settle"
  end

  private

  def x(*command)
    out, = Open3.capture2e({"DISPLAY" => display}, *command)
    out
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
