def leaf = Probe.here
def toss(tag, n) = n.zero? ? throw(tag, 1) : toss(tag, n - 1)
def catcher(tag, n)
  catch(tag) { toss(tag, n) }
  leaf
end
def inner
  catch(:outer) do
    catch(:inner) { [1].each { toss(:outer, 3) } }
    leaf
  end
  leaf
end
def with_ensure
  catch(:x) do
    begin
      toss(:x, 2)
    ensure
      leaf
    end
  end
end
def anonymous = catch { |t| [t].each { |u| throw u } }
10.times { |i| catcher(:t, i) }
inner
with_ensure
anonymous
(toss(:nowhere, 2) rescue leaf)
Thread.new { catcher(:u, 4) }.join
Fiber.new { catcher(:v, 4) }.resume
leaf
