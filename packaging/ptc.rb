class Ptc < Formula
  desc "@SUMMARY@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

@PLATFORMS@
  def install
    bin.install "ptc"
    generate_completions_from_executable(bin/"ptc", "completions", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ptc --version")
    assert_equal "3\n", shell_output("#{bin}/ptc eval '(+ 1 2)'")
  end
end
