# returns: unbalanced  (each retry says CALL again in the same frame)
def floor(n) = raise("x #{n}")
def leaf = Probe.here
def again
  @n = @n.to_i + 1
  floor(@n)
rescue
  leaf
  retry if @n < 5
  leaf
end
def again_inside
  tries = 0
  begin
    tries += 1
    [1].each { floor(tries) }
  rescue
    leaf
    retry if tries < 4
    leaf
  ensure
    leaf
  end
end
def redone
  n = 0
  [1, 2].each do |x|
    n += 1
    leaf
    redo if n == 1
    next if n == 2
    leaf
  end
end
def many
  begin
    begin
      leaf
      floor(1)
    ensure
      leaf
    end
  ensure
    leaf
  end
rescue
  leaf
end
def loops
  i = 0
  while true
    i += 1
    begin
      next if i == 1
      break if i == 3
    ensure
      leaf
    end
  end
  until i.zero?
    i -= 1
    redo_once = i == 1
  end
  loop { leaf; break }
  (1..3).each { |x| next leaf if x == 2 }
  leaf
end
again
again_inside
redone
many
loops
leaf
