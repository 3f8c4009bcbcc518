# frozen_string_literal: true

require "open3"

# Pixels of a picture, from a PNG file or a screen, by ImageMagick.
class Picture
  attr_reader :width, :height

  def self.of_file(path)
    size, = Open3.capture2("identify", "-format", "%w %h", path)
    bytes, status = Open3.capture2("convert", path, "-depth", "8", "rgb:-", binmode: true)
    raise "convert #{path} failed" unless status.success?

    new(*size.split.map(&:to_i), bytes)
  end

  def initialize(width, height, bytes)
    raise "#{bytes.bytesize} bytes for #{width}x#{height}" unless bytes.bytesize == width * height * 3

    @width, @height, @bytes = width, height, bytes
  end

  def inspect = "#<Picture #{width}x#{height} #{@bytes.hash.to_s(16)}>" # not megabytes in a failure's message

  # [red, green, blue], 0 to 255
  def [](x, y) = @bytes.byteslice((y * width + x) * 3, 3).bytes

  def row(y) = @bytes.byteslice(y * width * 3, width * 3).bytes.each_slice(3).to_a

  # Rows [first, last] cut out.
  def rows(first, last) = Picture.new(width, last - first + 1, @bytes.byteslice(first * width * 3, (last - first + 1) * width * 3))

  def ==(other) = other.is_a?(Picture) && width == other.width && bytes == other.bytes

  # How many pixels are coloured (not grey, not dark)?
  def colored = row_count { |r, g, b| [r, g, b].max - [r, g, b].min > 50 && [r, g, b].max > 90 }

  # Runs of one colour in a row of pixels, at least min_px wide: [[first x, last x, colour], …]
  def runs(y, min_px:)
    row(y).each_with_index.chunk_while { |(a, _), (b, _)| close?(a, b) }
      .map { |run| [run.first.last, run.last.last, run[run.size / 2].first] }
      .select { |first, last, _| last - first + 1 >= min_px }
  end

  def self.close?(a, b, by = 24) = a.zip(b).all? { |x, y| (x - y).abs <= by }

  protected

  attr_reader :bytes

  private

  def close?(...) = Picture.close?(...)

  def row_count = @bytes.bytes.each_slice(3).count { |pixel| yield(*pixel) }
end
