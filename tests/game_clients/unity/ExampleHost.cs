// Runs the sample of the package as a scene with one object would.
using Gatehouse;
using UnityEngine;

public static class ExampleHost
{
    public static void Main(string[] arguments)
    {
        var scene = new GameObject("scene");
        GatehouseClient client = scene.AddComponent<GatehouseClient>();
        client.BaseUrl = arguments[0];
        client.AppId = long.Parse(arguments[1]);
        scene.AddComponent<SignInExample>();
        Engine.RunFramesUntil(() => false);
    }
}
