# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/window"

# Moving through time in a real window, live and on a recording, drawn by the software driver with the validation layer on.
class E2EFilmTest < Minitest::Test
  include TestHelp
  include RealWindow

  STRIP_Y = 700 # of a window of 1280 by 720
  LEFT, RIGHT = 14, 1266 # where the strip's time begins and ends

  # The scene alone: the lines at the edges have figures that change.
  def film = scene_of(@screen.picture)
  def settled_film = scene_of(settled_picture(pause: 0.5) { scene_of(_1) })
  def scene_of(picture) = picture.rows(110, 600)

  # The share of pixels that are alike.
  def alike(a, b)
    points = (0...a.height).step(5).to_a.product((0...a.width).step(5).to_a)
    points.count { |y, x| Picture.close?(a[x, y], b[x, y], 40) }.fdiv(points.size)
  end

  # Pixels of the strip that the frame is drawn with: where its edges are, left to right.
  def frame_edges
    row = @screen.picture.row(STRIP_Y)
    row.each_index.select { |x| bright?(row[x]) }.slice_when { |a, b| b > a + 3 }.map { |run| run.sum / run.size }
  end

  # White while following, yellow otherwise; bars and pauses are neither.
  def bright?((red, green, blue)) = red > 200 && green > 170 && (blue > 200 || blue < 100)

  BUSY = <<~RUBY
    def leaf(n) = n
    def outer = 600.times { |i| leaf(i) }
    def early = 3_000.times { outer }
    def late = sleep(0.3)
    early
    late
  RUBY

  # From all of it to some hundredth, near the begin.
  def look_at_the_begin
    @screen.key("2")
    @screen.drag(1, [RIGHT, STRIP_Y], [70, STRIP_Y])
    @screen.drag(1, [70, STRIP_Y], [24, STRIP_Y])
  end

  def test_a_recording_is_opened_whole_and_walked_through
    pid, = open_window("view", record("def one = sleep(0.8)\ndef two = sleep(0.8)\none\ntwo\n"))
    wait_until("its name") { @screen.title == "rrtrace: made.rrt" }
    @screen.key("2")
    wait_until("boxes") { film.colored > 20_000 }
    whole = settled_film
    assert_equal [LEFT, RIGHT], [frame_edges.first, frame_edges.last].zip([LEFT, RIGHT]).map { |x, want| ((x - want).abs <= 4) ? want : x }
    @screen.drag(1, [RIGHT, STRIP_Y], [640, STRIP_Y])
    first_half = settled_film
    refute_equal whole, first_half, "dragging the frame's edge shows less of it"
    assert_in_delta 640, frame_edges.last, 5
    @screen.drag(1, [300, STRIP_Y], [900, STRIP_Y])
    second_half = settled_film
    refute_equal first_half, second_half, "dragging the frame moves in time"
    assert_in_delta 614, frame_edges.first, 8
    @screen.drag(1, [100, STRIP_Y], [101, STRIP_Y])
    refute_equal second_half, settled_film, "a click takes the film there"
    %w[L End].each do |key|
      @screen.key("a", "a", key)
      assert_in_delta RIGHT, (settled_film && frame_edges.last), 6, "#{key} goes to the end"
    end
    @screen.key("f")
    assert_operator alike(whole, settled_film), :>, 0.98, "F shows all of it again"
    @screen.key("space")
    assert_operator alike(whole, settled_film), :>, 0.98, "a recording has nothing to stop"
    quit
    assert_equal 0, wait_for_exit(pid).exitstatus
  end

  def test_detail_that_memory_has_let_go_comes_back_live_and_from_the_file
    pid, = open_window("--memory", "16M", "-o", temp_path("made.rrt"), write("program.rb", BUSY))
    assert_equal 0, wait_for_exit(pid).exitstatus
    wait_until("the last picture") { @screen.title.end_with?("(ended)") }
    settled_film
    look_at_the_begin
    live = wait_for_detail
    quit
    %w[16M 1G].each do |memory|
      pid, = open_window("view", temp_path("made.rrt"), "--memory", memory)
      settled_film
      look_at_the_begin
      file = wait_for_detail
      assert_operator alike(live, file), :>, 0.9, "--memory #{memory}"
      quit
      assert_equal 0, wait_for_exit(pid).exitstatus
    end
  end

  # Calls of `outer` one beside the other, rather than one box for many.
  def wait_for_detail
    picture = nil
    wait_until("the detail") do
      picture = settled_film
      (0...picture.height).step(4).any? { |y| picture.runs(y, min_px: 4).size > 8 }
    end
    picture
  end

  def test_what_was_stopped_stays_as_it_is_when_the_program_ends
    pid, = open_window(write("program.rb", "def blink = sleep(0.05)\nblink until File.exist?(#{temp_path("enough").inspect})\n"))
    wait_until("boxes") { @screen.picture.colored > 3_000 }
    @screen.key("space")
    standing = settled_film
    assert_operator pill_pixels, :>, 100, "PAUSED is said"
    File.write(temp_path("enough"), "")
    wait_for_exit(pid)
    wait_until("the end") { @screen.title.end_with?("(ended)") }
    sleep 1
    assert_operator alike(standing, settled_film), :>, 0.995
    assert_equal 0, pill_pixels, "there is no now to go back to"
    quit
  end

  # Of the word PAUSED, in warm yellow, below the top line.
  def pill_pixels
    picture = @screen.picture
    (50..90).sum { |y| (500...780).count { |x| Picture.close?(picture[x, y], [255, 195, 79], 30) } }
  end

  def test_rewinding_while_the_program_goes_on
    pid, = open_window(write("program.rb", "def work = sleep(0.02)\nwork until File.exist?(#{temp_path("enough").inspect})\n"))
    wait_until("boxes") { film.colored > 3_000 }
    sleep 2
    @screen.drag(1, [200, STRIP_Y], [201, STRIP_Y])
    then_ = settled_film
    sleep 1.5
    assert_operator alike(then_, film), :>, 0.99, "the past stands still"
    edges = frame_edges
    @screen.key("l")
    wait_until("now again") { frame_edges.last > RIGHT - 6 }
    assert_operator edges.last, :<, RIGHT - 20, "while looking back the frame was elsewhere"
    refute_equal film, (sleep(0.5) && film), "the film runs"
    File.write(temp_path("enough"), "")
    wait_for_exit(pid)
    quit
  end

  def test_a_killed_recorders_file_is_shown_as_well
    path = record(BUSY)
    File.truncate(path, File.size(path) - 1000)
    _, output = open_window("view", path)
    wait_until("boxes") { film.colored > 10_000 }
    quit
    assert_match(/made\.rrt: .*killed|made\.rrt: .*damaged/, File.read(output))
  end

  def test_what_cannot_be_opened_is_said_in_one_line
    {
      ["view", "/nowhere.rrt"] => [1, %r{\Arrtrace: /nowhere\.rrt: No such file}],
      ["view", File.expand_path(__FILE__)] => [1, /is no rrtrace recording/],
      ["view", "--memory", "much", File.expand_path(__FILE__)] => [2, /--memory: much is no size/],
      ["view", "--size", "big", File.expand_path(__FILE__)] => [2, /--size: big is no size/],
      ["view", "--colour", File.expand_path(__FILE__)] => [2, /no such option: --colour/]
    }.each do |arguments, (code, message)|
      ran = run_rrtrace(*arguments)
      assert_equal [code, "", 1], [ran.code, ran.out, ran.err.lines.size], arguments.inspect
      assert_match message, ran.err
    end
    ran = run_rrtrace("view", record("1.to_s"), env: {"DISPLAY" => nil, "SDL_VIDEODRIVER" => nil})
    assert_equal 1, ran.code
    assert_match(/\Arrtrace: view: no window: no display; rrtrace shot/, ran.err)
  end
end
