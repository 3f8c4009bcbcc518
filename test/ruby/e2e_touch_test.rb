# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/window"

# What the window answers, by mouse and keyboard, on a real X server with the validation layer on.
class E2ETouchTest < Minitest::Test
  include TestHelp
  include RealWindow

  PROGRAM = <<~RUBY
    def alpha = sleep(0.6)

    def beta = sleep(1.2)
    alpha
    beta
  RUBY

  def setup
    super
    @editor = write("editor.sh", <<~SH, mode: 0o755)
      #!/bin/sh
      printf '%s\\n' "$@" > #{temp_path("opened")}.new
      mv #{temp_path("opened")}.new #{temp_path("opened")}
    SH
  end

  def clean_environment = super.merge("RRTRACE_EDITOR" => "#{@editor} --at {line} {file}")

  # The program has ended and its flame chart stands still.
  def open_ended(code = PROGRAM)
    super
    settled_picture(pause: 0.3) { |picture| picture.rows(100, picture.height - 100) }
  end

  # What the editor was given.
  def opened
    wait_until("the editor") { File.exist?(temp_path("opened")) }
    File.readlines(temp_path("opened"), chomp: true)
  end

  def test_the_search_finds_a_call_and_enter_opens_its_source
    open_ended
    @screen.type("/beta")
    @screen.key("Return") # to the call, which is selected
    @screen.key("Tab") # the line is closed
    @screen.key("Return")
    assert_equal ["--at", "3", temp_path("program.rb")], opened
    quit
  end

  def test_a_click_on_a_box_selects_it_and_escape_lets_go_without_closing
    open_ended
    before = @screen.picture
    boxes = (100...600).lazy.map { |y| [y, before.runs(y, min_px: 150).reverse.find { |_, _, color| color.max - color.min > 40 }] }
    row, box = boxes.find { |_, found| found }
    x = (box[0] + box[1]) / 2
    system({"DISPLAY" => @screen.display}, "xdotool", "mousemove", "--window", @screen.find_window, x.to_s, (row + 3).to_s)
    sleep 0.5
    system({"DISPLAY" => @screen.display}, "xdotool", "click", "1")
    sleep 0.5
    @screen.key("Return")
    assert_includes [["--at", "1", temp_path("program.rb")], ["--at", "3", temp_path("program.rb")]], opened
    3.times { @screen.key("Escape") }
    sleep 0.5
    assert @screen.window?, "Escape does not close the window"
    quit
  end

  def test_p_keeps_a_picture_in_the_folder_that_the_program_was_started_in
    open_ended
    width, height = @screen.picture.then { [_1.width, _1.height] }
    @screen.key("p")
    wait_until("the picture") { !Dir[temp_path("rrtrace-*.png")].empty? }
    path = Dir[temp_path("rrtrace-*.png")].first
    assert_match(/rrtrace-\d{8}-\d{6}\.png\z/, path)
    assert_equal [width, height], File.binread(path, 8, 16).unpack("NN")
    quit
  end

  def test_lists_colours_marks_and_the_search_change_the_picture_and_all_can_be_closed
    open_ended
    sleep 15 # the hint has faded
    plain = @screen.picture
    %w[t v m].each do |key|
      before = @screen.picture
      @screen.type(key)
      wait_until("#{key} to change the picture") { differs?(before, @screen.picture) }
    end
    @screen.type("t")
    2.times { @screen.type("v") }
    @screen.type("/alpha")
    wait_until("the rest to step back") { differs?(plain, @screen.picture) }
    @screen.key("Escape")
    wait_until("the mark alone to be left") { !differs?(plain, @screen.picture, 0.02) }
    quit
  end

  def differs?(one, other, share = 0.0003)
    count = 0
    (44...(one.height - 120)).step(3) { |y| (0...one.width).step(3) { |x| count += 1 unless Picture.close?(one[x, y], other[x, y], 24) } }
    count > one.width * one.height / 9 * share
  end

  def test_the_window_comes_back_as_it_was_left
    open_ended
    @screen.resize(900, 600)
    wait_until("the new size") { @screen.picture.width == 900 }
    quit
    assert_equal "900 600 1", File.read(temp_path("state/rrtrace/window")).strip
    open_ended
    assert_equal [900, 600], @screen.geometry.last(2)
    quit
  end
end
