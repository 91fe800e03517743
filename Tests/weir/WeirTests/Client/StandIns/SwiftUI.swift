// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// What docs/client/recipes/SwiftUI.swift uses of SwiftUI, with the signatures of iOS 17. Nothing of it runs.
@_exported import Foundation
@_exported import Observation

@MainActor public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {}

extension View where Body == Never {
    public var body: Never { preconditionFailure("a stand-in") }
}

/// A view or scene that shows nothing.
public struct Shown: View, Scene {
    public typealias Body = Never
}

@resultBuilder public struct ViewBuilder {
    public static func buildBlock(_ views: any View...) -> Shown { Shown() }
    public static func buildOptional(_ view: Shown?) -> Shown { Shown() }
}

extension View {
    public func task(_ action: @escaping @Sendable @isolated(any) () async -> Void) -> Shown { Shown() }
    public func onSubmit(_ action: @escaping @MainActor () -> Void) -> Shown { Shown() }
}

@MainActor public protocol Scene {}

extension Scene {
    public func onChange<Value: Equatable>(
        of value: Value, _ action: @escaping @MainActor (_ old: Value, _ new: Value) -> Void
    ) -> Shown { Shown() }
}

@MainActor public protocol App {
    associatedtype Body: Scene
    var body: Body { get }
    init()
}

extension App {
    public static func main() {}
}

public struct WindowGroup: Scene {
    public init(@ViewBuilder content: () -> some View) {}
}

@propertyWrapper public struct State<Value> {
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    public var wrappedValue: Value {
        get { preconditionFailure("a stand-in") }
        nonmutating set {}
    }
    public var projectedValue: Binding<Value> { Binding() }
}

public struct Binding<Value> {}

public enum ScenePhase: Equatable, Sendable { case background, inactive, active }

public struct EnvironmentValues {
    public var scenePhase: ScenePhase { .active }
}

@propertyWrapper public struct Environment<Value> {
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) {}
    public var wrappedValue: Value { preconditionFailure("a stand-in") }
}

public struct VStack: View {
    public init(@ViewBuilder content: () -> some View) {}
    public typealias Body = Never
}

public struct HStack: View {
    public init(@ViewBuilder content: () -> some View) {}
    public typealias Body = Never
}

public struct List: View {
    public init<Data: RandomAccessCollection, ID: Hashable>(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder rowContent: (Data.Element) -> some View
    ) {}
    public typealias Body = Never
}

public struct Text: View {
    public init(_ content: String) {}
    public typealias Body = Never
}

public struct TextField: View {
    public init(_ title: String, text: Binding<String>) {}
    public typealias Body = Never
}

public struct ProgressView: View {
    public init(value: Double?) {}
    public typealias Body = Never
}
