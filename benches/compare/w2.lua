function work()
  local i, acc = 0, 0
  while i < 5000000 do
    acc = acc + i
    i = i + 1
  end
  return acc
end
