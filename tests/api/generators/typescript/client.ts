// A refusal is told by its type, and what is answered has the fields of the schema.
import createClient from "openapi-fetch";
import type { paths } from "./schema";

const client = createClient<paths>({ baseUrl: "http://localhost" });

export async function request(): Promise<string> {
  const { data, error } = await client.POST("/api/v1/allocations", {
    body: { project: "vision-train", offering: "l40s/whole", hours: "1" },
  });
  if (!error) return data.phase === "queued" ? data.message : data.name;
  switch (error.type) {
    case "urn:gpu-portal:problem:quota_exceeded":
      return error.dimensions[0].dimension;
    case "urn:gpu-portal:problem:invalid":
      return Object.keys(error.errors).join();
    default:
      return error.title;
  }
}
