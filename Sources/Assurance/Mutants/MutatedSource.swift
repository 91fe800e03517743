/// Applies all mutants of a file to its text, each guarded so that a variable of the environment activates one of them.
enum MutatedSource {
    /// A mutant that cannot be applied.
    struct Problem: Error, CustomStringConvertible {
        let mutant: String
        let reason: String

        var description: String { "mutant '\(mutant)' no longer applies: \(reason)" }
    }

    private struct Edit {
        let range: Range<String.Index>
        let original: String
        var mutants: [NumberedMutant]

        var text: String {
            switch mutants[0].mutant.kind {
            case .expression:
                let choices = mutants.map { "Mutation.isActive(\($0.number)) ? (\($0.mutant.replacement)) : " }
                return "(\(choices.joined())(\(original)))"
            case .statement:
                let choices = mutants.map { "if Mutation.isActive(\($0.number)) {\n\($0.mutant.replacement)\n} else " }
                return choices.joined() + "{\n\(original)\n}"
            case .text:
                let choices = mutants.map { "Mutation.isActive(\($0.number)) ? \"\($0.mutant.replacement)\" : " }
                return "\\(\(choices.joined())\"\(original)\")"
            }
        }
    }

    /// The text with all mutants.
    static func apply(_ mutants: [NumberedMutant], to text: String) throws(Problem) -> String {
        var edits: [Edit] = []
        for numbered in mutants {
            let range = try range(of: numbered.mutant, in: text)
            if let same = edits.firstIndex(where: { $0.range == range }) {
                guard edits[same].mutants[0].mutant.kind == numbered.mutant.kind else {
                    throw Problem(
                        mutant: numbered.mutant.name, reason: "another one of the same text is of another kind")
                }
                edits[same].mutants.append(numbered)
            } else if let other = edits.first(where: { $0.range.overlaps(range) }) {
                throw Problem(mutant: numbered.mutant.name, reason: "it overlaps '\(other.mutants[0].mutant.name)'")
            } else {
                edits.append(Edit(range: range, original: String(text[range]), mutants: [numbered]))
            }
        }
        var result = "import Mutation\n"
        var end = text.startIndex
        for edit in edits.sorted(by: { $0.range.lowerBound < $1.range.lowerBound }) {
            result += text[end..<edit.range.lowerBound]
            result += edit.text
            end = edit.range.upperBound
        }
        return result + text[end...]
    }

    private static func range(of mutant: Mutant, in text: String) throws(Problem) -> Range<String.Index> {
        let contexts = text.ranges(of: mutant.context)
        guard contexts.count == 1 else {
            throw Problem(mutant: mutant.name, reason: "\(mutant.file) has its text \(contexts.count) times, not once")
        }
        let originals = text[contexts[0]].ranges(of: mutant.original)
        guard originals.count == 1 else {
            throw Problem(
                mutant: mutant.name, reason: "its context has the original \(originals.count) times, not once")
        }
        return originals[0]
    }
}
