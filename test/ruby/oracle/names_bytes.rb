# encoding: utf-8
# Names of any bytes, and longer than what is kept.
class Wörter
  def 計算 = 1
  def ünïcode? = true
  def σ=(x)
    @x = x
  end
  define_method("with space\n\ttab") { 2 }
  define_method("\xFF\x00bin".b) { 3 }
  define_method("sjis\x82\xa0".dup.force_encoding("Shift_JIS")) { 4 }
  define_method("é" * 40_000) { 5 }
  define_method("x" * 65_535) { 6 }
  define_method("") { 7 }
  define_method("a#b.c::d") { 8 }
  define_method("<main>") { 9 }
  define_method(:"block in x") { 10 }
end
Übergröße = Class.new { def größe = 11 }
Long = Module.new
name = "L" + "o" * 3000
Long.const_set(name, Class.new { def deep = 12; const_set(:In, Class.new { def in = 13 }) })
w = Wörter.new
2.times do
  w.計算
  w.ünïcode?
  w.σ = 1
  w.public_send("with space\n\ttab")
  w.public_send("\xFF\x00bin".b)
  w.public_send("sjis\x82\xa0".dup.force_encoding("Shift_JIS"))
  w.public_send("é" * 40_000)
  w.public_send("x" * 65_535)
  w.public_send("")
  w.public_send("a#b.c::d")
  w.public_send("<main>")
  w.public_send(:"block in x")
  Übergröße.new.größe
  Long.const_get(name).new.deep
  Long.const_get(name)::In.new.in
end
