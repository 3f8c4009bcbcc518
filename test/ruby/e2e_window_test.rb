# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/window"

# A real window on a real X server, drawn by the software driver with the validation layer on.
class E2EWindowTest < Minitest::Test
  include TestHelp
  include RealWindow

  def open_window(code, *options) = super(*options, write("program.rb", code))

  def test_boxes_stand_where_the_calls_were
    pid, = open_window("def alpha = sleep(0.6)\ndef beta = sleep(1.4)\nalpha\nbeta\n")
    assert_equal 0, wait_for_exit(pid).exitstatus
    wait_until("the last picture") { @screen.title.end_with?("(ended)") }
    @screen.key("2") # the flame chart shows time as it is, from left to right
    @screen.key("Home")
    picture = settled_picture
    # Somewhere there is the row of Object#alpha and Object#beta: two boxes side by side, 30 % and 70 % of what they fill.
    pairs = (0...picture.height).filter_map do |y|
      wide = picture.runs(y, min_px: 100).reject { |_, _, color| Picture.close?(color, picture[picture.width / 2, 90], 12) || color.max - color.min < 25 }
      next unless wide.size == 2

      (first, last, a), (second, end_, b) = wide
      next if Picture.close?(a, b)

      share = (last - first).fdiv(end_ - first)
      [share, second - last]
    end
    assert_operator pairs.size, :>=, 4, "rows of pixels with two boxes of different colours"
    shares = pairs.map(&:first).sort
    assert_in_delta 0.3, shares[shares.size / 2], 0.03, "where the first box ends"
    quit
  end

  def test_space_stops_the_film_and_starts_it_again
    open_window("def blink = sleep(0.05)\n300.times { blink }\n")
    wait_until("boxes") { @screen.picture.colored > 3_000 }
    moving = Array.new(2) do
      sleep(0.5)
      film(@screen.picture)
    end
    refute_equal(*moving, "the film runs")
    @screen.key("space")
    standing = film(settled_picture { film(_1) }) # the camera comes to rest first
    sleep 1.5
    assert_equal standing, film(@screen.picture), "the film stands still"
    @screen.key("space")
    wait_until("the film to run again") { film(@screen.picture) != standing }
    quit
  end

  # Without the lines at the top and the bottom, whose figures change.
  def film(picture) = picture.rows(150, picture.height - 150)

  def test_cameras_orbit_pan_zoom_and_help_change_the_picture_and_home_brings_it_back
    pid, = open_window("def one(n) = n.zero? ? sleep(0.02) : one(n - 1)\n20.times { one(_1 % 7) }\n")
    wait_for_exit(pid)
    wait_until("the last picture") { @screen.title.end_with?("(ended)") }
    sleep 6 # the hint line has faded
    home = film(settled_picture)
    actions = {
      "orbit" => -> { @screen.drag(2, [600, 400], [750, 330]) },
      "pan" => -> { @screen.drag(3, [600, 400], [700, 400]) },
      "zoom" => -> { @screen.wheel(5, [600, 400]) },
      "zoom by key" => -> { 3.times { @screen.key("w") } },
      "flame chart" => -> { @screen.key("2") },
      "threads" => -> { @screen.key("3") },
      "help" => -> { @screen.key("shift+slash") }
    }
    actions.each do |name, action|
      action.call
      refute_equal home, film(settled_picture), name
      @screen.key("shift+slash") if name == "help"
      @screen.key("1", "Home")
      back = film(settled_picture)
      same = (0...back.height).step(7).sum { |y| (0...back.width).step(7).count { |x| Picture.close?(back[x, y], home[x, y], 40) } }
      total = (0...back.height).step(7).size * (0...back.width).step(7).size
      assert_operator same, :>, total * 0.97, "#{name}: Home and 1 bring the first picture back"
    end
    @screen.key("Escape")
    sleep 0.5
    assert @screen.window?, "Escape does not close the window"
    quit
  end

  def test_closing_the_window_lets_the_program_run_on
    pid, output = open_window(<<~RUBY)
      require "rrtrace"
      def work = nil
      puts "before: \#{Rrtrace.started?}"
      $stdout.flush
      work until File.exist?(#{temp_path("closed").inspect})
      sleep 0.2
      100.times { work }
      puts "after: \#{Rrtrace.started?}"
    RUBY
    wait_for_line(output, "before: true")
    quit
    wait_until("the visualizer to end") { visualizer_pids.empty? }
    File.write(temp_path("closed"), "")
    assert_equal 0, wait_for_exit(pid).exitstatus
    assert_equal ["before: true", "after: false"], File.readlines(output, chomp: true), "nothing is said: the user knows"
  end

  def test_the_window_outlives_the_program_unless_told_otherwise
    pid, = open_window("def quick = 1\nquick\nsleep 0.5", "--close-on-exit")
    wait_for_exit(pid)
    wait_until("the window to close by itself") { !@screen.window? }
  end

  def test_resizing_and_minimising_in_mid_film
    open_window("def blink = sleep(0.01)\n800.times { blink }\n")
    [[900, 500], [320, 200], [1300, 850], [700, 700]].each do |width, height|
      @screen.resize(width, height)
      wait_until("a picture of #{width}x#{height}") do
        picture = @screen.picture
        [picture.width, picture.height] == [width, height] && picture.colored > 300
      end
    end
    @screen.minimize
    sleep 0.5
    @screen.restore
    wait_until("boxes again") { @screen.picture.colored > 300 }
    @screen.find_window
    quit
  end

  def test_a_window_that_is_taken_away_does_not_hurt_the_program
    pid, output = open_window("def blink = sleep(0.01)\nputs 'ready'\n$stdout.flush\n300.times { blink }\nputs 'done'\n")
    wait_for_line(output, "ready")
    @screen.destroy_window
    assert_equal 0, wait_for_exit(pid).exitstatus
    assert_includes File.read(output), "done"
  end

  def test_irb_is_traced_while_it_is_typed_into
    @output = output = temp_path("irb.txt")
    reader, writer = IO.pipe
    irb = File.join(RbConfig::CONFIG["bindir"], "irb")
    pid = Process.spawn(clean_environment, RbConfig.ruby, EXE, irb, "-f", in: reader, out: output, err: [:child, :out], chdir: temp_path)
    programs << pid
    reader.close
    @screen.find_window
    writer.puts "def fact(n) = n.zero? ? 1 : n * fact(n - 1)"
    writer.puts "puts fact(20)"
    writer.flush
    wait_until("irb's answer") { File.read(output).include?("2432902008176640000") }
    wait_until("boxes") { @screen.picture.colored > 3_000 }
    writer.puts "Process.exit!(3)" # irb's own exit is always 0
    writer.close
    assert_equal 3, wait_for_exit(pid).exitstatus
    wait_until("the last picture") { @screen.title.end_with?("(ended)") }
    quit
  end
end
