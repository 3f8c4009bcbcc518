# frozen_string_literal: true

# Makes docs/scene.png, flame.png and threads.png anew: examples/demo.rb in a window on a screen of its own (Xvfb), whose key P
# keeps each picture.
require "tmpdir"
require_relative "../test/ruby/support/screen"

ROOT = File.expand_path("..", __dir__)

# The window and its keys.
class Photographer
  def initialize(state_folder)
    @screen = Screen.new
    environment = {"DISPLAY" => @screen.display, "SDL_VIDEODRIVER" => "x11", "XDG_STATE_HOME" => state_folder, "DEMO_SECONDS" => "20"}
    @pid = Process.spawn(environment, "bin/rrtrace", "examples/demo.rb", chdir: ROOT, out: File::NULL)
    @screen.find_window { abort "no window" }
  end

  def key(*names) = @screen.key(*names).then { sleep 0.8 }
  def type(text) = text.each_char { |sign| @screen.type(sign) && sleep(0.1) }
  def drag(...) = @screen.drag(...).then { sleep 0.8 }

  def keep(name)
    key("p")
    sleep 0.2 until (taken = Dir[File.join(ROOT, "rrtrace-2*.png")].first)
    path = File.join(ROOT, "docs/#{name}.png")
    # A page loads faster with 256 colours, and nobody sees the others.
    system("convert", taken, "-strip", "+dither", "-colors", "256", path, exception: true)
    File.delete(taken)
    puts "docs/#{name}.png: #{File.size(path) / 1000} kB"
    sleep 6.5 # until the window has said so long enough
  end

  def close
    @screen.key("ctrl+q")
    Process.wait(@pid)
    @screen.close
  end
end

Dir.mktmpdir do |folder|
  photographer = Photographer.new(folder)
  sleep 6
  photographer.type("t") # what is slow now
  sleep 3
  photographer.keep("scene")
  photographer.type("t")
  photographer.key("3")
  photographer.drag(1, [420, 636], [560, 636]) # measures; the film flows on meanwhile
  photographer.keep("threads")
  sleep 10 # the evening is over
  photographer.key("Escape", "2")
  photographer.type("/Recipe#prepare")
  photographer.key("Return", "Tab") # its first call is selected, and the line is closed
  photographer.key("Escape") # and the search; the selection stays
  photographer.key("f")
  2.times { photographer.key("s") }
  photographer.keep("flame")
  photographer.close
end
