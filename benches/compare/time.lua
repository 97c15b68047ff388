-- lua5.4 time.lua WORKLOAD: one warm-up and five timed runs, CPU time.
local name = arg[1]
dofile((arg[0]:match("^(.*/)") or "") .. name .. ".lua")
local result, times = nil, {}
for run = 0, 5 do
  local start = os.clock()
  result = work()
  if run > 0 then times[#times + 1] = string.format("%.4f", (os.clock() - start) * 1e3) end
end
print("RES " .. name .. " " .. tostring(result) .. " " .. table.concat(times, " "))
